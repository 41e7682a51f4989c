/* The few declarations of the CUDA 13.0 runtime that the fake runtime, the tests and the CUDA backend use,
 * for machines where no toolkit is installed. Where one is installed its own header is used instead, and this
 * folder stays out of the include path. Values are those of the CUDA 13.0 interface. */
#ifndef STEPTIMER_FAKE_CUDA_RUNTIME_API_H
#define STEPTIMER_FAKE_CUDA_RUNTIME_API_H

#include <stddef.h>

#define CUDART_VERSION 13000
#define CUDARTAPI

#if defined(__cplusplus)
#define STEPTIMER_FAKE_DEFAULT(value) = value
#else
#define STEPTIMER_FAKE_DEFAULT(value)
#endif

/* With a default stream per thread, functions that take a stream have a second name. */
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define cudaEventRecord cudaEventRecord_ptsz
#define cudaEventRecordWithFlags cudaEventRecordWithFlags_ptsz
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#define cudaStreamBeginCapture cudaStreamBeginCapture_ptsz
#define cudaStreamEndCapture cudaStreamEndCapture_ptsz
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_ptsz
#define cudaStreamGetDevice cudaStreamGetDevice_ptsz
#define cudaStreamGetFlags cudaStreamGetFlags_ptsz
#define cudaStreamGetId cudaStreamGetId_ptsz
#define cudaStreamIsCapturing cudaStreamIsCapturing_ptsz
#define cudaStreamQuery cudaStreamQuery_ptsz
#define cudaStreamSynchronize cudaStreamSynchronize_ptsz
#define cudaStreamWaitEvent cudaStreamWaitEvent_ptsz
#endif

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01

#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess 0x04

#define cudaEventRecordDefault 0x00
#define cudaEventRecordExternal 0x01

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorDeviceUninitialized = 201,
  cudaErrorECCUncorrectable = 214,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
  cudaErrorTimeout = 909,
  cudaErrorUnknown = 999,
  cudaErrorApiFailureBase = 10000
};
typedef enum cudaError cudaError_t;

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};

cudaError_t CUDARTAPI cudaDriverGetVersion(int* version);
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version);

cudaError_t CUDARTAPI cudaPeekAtLastError(void);
cudaError_t CUDARTAPI cudaGetLastError(void);
const char* CUDARTAPI cudaGetErrorName(cudaError_t error);
const char* CUDARTAPI cudaGetErrorString(cudaError_t error);

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count);
cudaError_t CUDARTAPI cudaGetDevice(int* device);
cudaError_t CUDARTAPI cudaSetDevice(int device);
cudaError_t CUDARTAPI cudaDeviceSynchronize(void);
cudaError_t CUDARTAPI cudaDeviceReset(void);

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event);
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream STEPTIMER_FAKE_DEFAULT(0));
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream STEPTIMER_FAKE_DEFAULT(0),
                                               unsigned int flags STEPTIMER_FAKE_DEFAULT(0));
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream);
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                          unsigned int flags STEPTIMER_FAKE_DEFAULT(0));
cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int* device);
cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags);
cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id);

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode);
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status);
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id STEPTIMER_FAKE_DEFAULT(0),
                                               cudaGraph_t* graph STEPTIMER_FAKE_DEFAULT(0),
                                               const cudaGraphNode_t** dependencies STEPTIMER_FAKE_DEFAULT(0),
                                               const cudaGraphEdgeData** edges STEPTIMER_FAKE_DEFAULT(0),
                                               size_t* dependency_count STEPTIMER_FAKE_DEFAULT(0));

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           unsigned long long flags STEPTIMER_FAKE_DEFAULT(0));
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph);

#if defined(__cplusplus)
}
#endif

#undef STEPTIMER_FAKE_DEFAULT

#endif
