#include "nvtx_notes.hpp"

#include <nvtx3/nvToolsExt.h>

namespace {

int domain;
nvtxRangeId_t last_range = 0;

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  nvtx_notes().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

nvtxRangeId_t NVTX_API start_range(nvtxDomainHandle_t of, const nvtxEventAttributes_t* attributes) {
  const bool right_domain = of == reinterpret_cast<nvtxDomainHandle_t>(&domain);
  nvtx_notes().push_back(std::string(right_domain ? "start " : "in another domain ") + attributes->message.ascii +
                         " #" + std::to_string(++last_range));
  return last_range;
}

void NVTX_API end_range(nvtxDomainHandle_t, nvtxRangeId_t id) { nvtx_notes().push_back("end #" + std::to_string(id)); }

}  // namespace

std::vector<std::string>& nvtx_notes() {
  static std::vector<std::string> notes;
  return notes;
}

extern "C" int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
extern "C" int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE2_DomainCreateA) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *table[NVTX_CBID_CORE2_DomainRangeStartEx] = reinterpret_cast<NvtxFunctionPointer>(start_range);
  *table[NVTX_CBID_CORE2_DomainRangeEnd] = reinterpret_cast<NvtxFunctionPointer>(end_range);
  return 1;
}
