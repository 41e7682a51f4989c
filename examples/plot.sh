#!/usr/bin/env bash
# Draws the CSV of a training (cpu_training --csv steps.csv) as a picture: batch and data time of each step stacked, the
# data wait of the last 100 steps as a line, and the five slowest batches marked.
#
#   examples/plot.sh steps.csv [steps.png]
set -euo pipefail
export LC_ALL=C

stop() {
  printf 'examples/plot.sh: %s\n' "$1" >&2
  exit 2
}

if [ $# = 0 ] || [ $# -gt 2 ]; then stop "usage: examples/plot.sh steps.csv [steps.png]"; fi
csv=$1
png=${2:-${csv%.csv}.png}
command -v gnuplot > /dev/null || stop "gnuplot is needed: apt-get install gnuplot-nox"
[ -r "$csv" ] || stop "$csv cannot be read; name a file that --csv has written"
for column in step batch_time_s data_time_s warmup; do
  case ,$(head -n 1 "$csv"), in
    *",$column,"*) ;;
    *) stop "$csv has no column $column; name a file that --csv has written" ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# step, batch in ms, data in ms (0 where unknown), data wait of the last 100 steps in percent. Warm-up steps are left out.
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
  $at["warmup"] == 1 { next }
  { batch = 1000 * $at["batch_time_s"]; data = 1000 * $at["data_time_s"]; known = $at["data_time_s"] != ""
    place = n++ % 100
    waits += (known ? data : 0) - old_data[place]; cycles += (known ? data + batch : 0) - old_cycle[place]
    old_data[place] = known ? data : 0; old_cycle[place] = known ? data + batch : 0
    print $at["step"], batch, data, (cycles > 0 ? 100 * waits / cycles : 0) }' "$csv" > "$work/steps"
[ -s "$work/steps" ] || stop "$csv holds no steps but warm-up; train for longer"
sort -k2,2nr "$work/steps" | awk 'NR <= 5' > "$work/slowest"  # head would leave sort without a reader
# Half as high again as 99 of 100 steps, so that a few slow ones do not flatten the rest.
top=$(awk '{ print $2 + $3 }' "$work/steps" | sort -n | awk '{ a[NR] = $1 } END { print 1.5 * a[int((NR * 99 + 99) / 100)] }')

gnuplot << END
set terminal pngcairo noenhanced size 1200,500 font "sans,11"
set output "$png"
set title "batch and data time of each step"
set xlabel "step"
set ylabel "ms"
set y2label "data_wait of the last 100 steps, %"
set yrange [0:$top]
set y2range [0:100]
set ytics nomirror
set y2tics
set key top left horizontal
set style fill solid 1.0 noborder
plot "$work/steps" using 1:(\$2 + \$3) with fillsteps lc rgb "#e8a33d" title "data", \
     "$work/steps" using 1:2 with fillsteps lc rgb "#4b7bb5" title "batch", \
     "$work/steps" using 1:4 axes x1y2 with lines lw 2 lc rgb "#222222" title "data_wait", \
     "$work/slowest" using 1:(\$2 + \$3 > $top ? $top : \$2 + \$3) with points pt 9 ps 1.5 lc rgb "#c0392b" title "slowest batches"
END
echo "$png"
