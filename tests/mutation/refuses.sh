#!/usr/bin/env bash
# A list that does not fit the code is refused by run.sh, with its reason.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# bug IN WAS NOW TEST: a list of one.
bug() {
  printf 'bug   the first\nin    %s\nwas   %s\nnow   %s\ntest  %s\n' "$@" > "$list"
}

check() { BUGS=$list "$here/run.sh" --check 2>&1; }

# refused REASON: run.sh ends with an error and says so.
refused() {
  local output
  if output=$(check); then
    echo "not refused: $1"
    exit 1
  fi
  if [[ $output != *"$1"* ]]; then
    printf 'refused, but without saying "%s":\n%s\n' "$1" "$output"
    exit 1
  fi
  echo "refused as it has to be: $1"
}

line='void pop_front() noexcept { ++begin_; }'
ring='unit/ring_test.cpp: a moved-from ring is empty and usable'

bug detail/ring.hpp "$line" 'void pop_front() noexcept { ++end_; }' "$ring"
check  # the control

bug detail/ring.hpp 'void pop_front() noexcept { --begin_; }' '' "$ring"
refused 'occurs 0 times in detail/ring.hpp'
bug detail/ring.hpp '++begin_;' '' "$ring"
check > /dev/null  # once as a whole line, however often within one
bug detail/pending_steps.hpp 'give_up_gap();' '' "$ring"
refused 'occurs 2 times in detail/pending_steps.hpp'
bug detail/ring.hpp "$line" "$line" "$ring"
refused 'it changes nothing'
bug detail/rong.hpp "$line" '' "$ring"
refused 'there is no include/steptimer/detail/rong.hpp'
bug detail/ring.hpp "$line" '' 'unit/ring_test.cpp: a moved-from ring is empty'
refused 'has no TEST_CASE("a moved-from ring is empty")'
bug detail/ring.hpp "$line" '' 'unit/rong_test.cpp: a moved-from ring is empty and usable'
refused 'there is no tests/unit/rong_test.cpp'
printf 'bug   one without a test\nin    detail/ring.hpp\nwas   public:\nnow\n' > "$list"
refused 'lacks one of the lines'
printf 'bug   the first\nwhere detail/ring.hpp\n' > "$list"
refused "begins with 'where'"
bug detail/ring.hpp 'public:' '' "$ring"
cat "$list" "$list" > "$list.twice"
mv "$list.twice" "$list"
refused 'another bug has the same name'
: > "$list"
refused 'there is no bug in'
