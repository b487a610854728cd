// SPDX-License-Identifier: Apache-2.0
#include "FakeCudaState.h"

namespace fake {

void reset() {
  Driver &d = driver();
  std::lock_guard lock(d.mutex);
  d.lazy = false;
  for (Stream *stream : d.streams)
    runUntil(*stream, stream->queued);
  d.deviceCount = devices;
  d.initResult = ok;
  d.memoryLimit = size_t(1) << 32;
  d.blocksOfMultiprocessor = 2;
  d.clusters = 60;
  d.failures.clear();
  d.calls.clear();
  d.launchCount = 0;
  d.violations = 0;
}
void setLazy(bool lazy) { driver().lazy = lazy; }
void setDeviceCount(int count) { driver().deviceCount = count; }
void setInitResult(int result) { driver().initResult = result; }
void setMemoryLimit(size_t bytes) { driver().memoryLimit = bytes; }
void setOccupancy(int blocksOfMultiprocessor, int clusters) {
  driver().blocksOfMultiprocessor = blocksOfMultiprocessor;
  driver().clusters = clusters;
}
void failNext(const char *function, int result, bool sticky, int after) {
  std::lock_guard lock(driver().mutex);
  driver().failures.push_back({function, result, sticky, after});
}
int calls(const char *function) {
  std::lock_guard lock(driver().mutex);
  auto found = driver().calls.find(std::string_view(function));
  return found == driver().calls.end() ? 0 : found->second;
}
std::vector<Launch> launches() {
  Driver &d = driver();
  return {d.launches.begin(), d.launches.begin() + static_cast<long>(std::min<uint64_t>(d.launchCount, 64))};
}
uint64_t launchCount() { return driver().launchCount; }
size_t liveBytes() { return driver().used; }
int violations() { return driver().violations; }
int functionAttribute(const char *function, int attribute) {
  Function *f = driver().lastOfName[function];
  return f && f->set.count(attribute) ? f->set[attribute] : -1;
}
uint64_t poolAttribute(int attribute) { return driver().poolAttributes[attribute]; }
bool jitOption(int option, uint64_t &value) {
  auto found = driver().jitOptions.find(option);
  if (found == driver().jitOptions.end())
    return false;
  value = reinterpret_cast<uintptr_t>(found->second);
  return true;
}
size_t streamCount() { return driver().streams.size(); }

} // namespace fake

#define ENTER(...)                                                                                                     \
  Call call(__VA_ARGS__);                                                                                              \
  if (call.result != ok)                                                                                               \
    return call.result;                                                                                                \
  [[maybe_unused]] Driver &d = call.d

#pragma GCC visibility push(default)
extern "C" {

Result cuInit(unsigned) {
  driver().initialized = driver().initResult == ok;
  return driver().initResult;
}
Result cuDriverGetVersion(int *version) {
  const char *chosen = std::getenv("FAKE_CUDA_VERSION");
  *version = chosen ? std::atoi(chosen) : 13000;
  return ok;
}
Result cuGetErrorName(Result error, const char **text) {
  static const std::map<Result, const char *> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},        {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {218, "CUDA_ERROR_INVALID_PTX"},      {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},  {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},   {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"},    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
      {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
  };
  auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? invalidValue : ok;
}
Result cuGetErrorString(Result error, const char **text) {
  *text = "the driver's words";
  return error == 12345 ? invalidValue : ok;
}

Result cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", false);
  *count = d.deviceCount;
  return ok;
}
Result cuDeviceGet(int *device, int ordinal) {
  ENTER("cuDeviceGet", false);
  *device = ordinal;
  return ordinal >= 0 && ordinal < d.deviceCount ? ok : invalidDevice;
}
Result cuDeviceGetName(char *name, int length, int) {
  const char *chosen = std::getenv("FAKE_CUDA_NAME");
  std::strncpy(name, chosen ? chosen : "Fake H200", static_cast<size_t>(length));
  return ok;
}
/// As the driver's: CUDA_VISIBLE_DEVICES renumbers devices, and each stays what it is.
Result cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  int physical = device;
  if (const char *visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::stringstream list(visible);
    for (std::string item; device >= 0 && std::getline(list, item, ','); --device)
      physical = std::stoi(item);
  }
  for (int i = 0; i < 16; ++i)
    uuid[i] = static_cast<unsigned char>(16 * i + physical);
  return ok;
}
Result cuDeviceGetAttribute(int *value, int attribute, int) {
  static const std::map<int, int> values = {{1, 1024},   {8, 49152},    {12, 65536},    {13, 1980000}, {16, 132},
                                            {36, 3201000}, {37, 6144},  {38, 62914560}, {39, 2048},    {75, 9},
                                            {76, 0},     {81, 233472},  {82, 65536},    {97, 232448},  {106, 32},
                                            {115, 1},    {120, 1}};
  auto found = values.find(attribute);
  if (found == values.end())
    return invalidValue;
  *value = found->second;
  return ok;
}
Result cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = size_t(140) << 30;
  return ok;
}
Result cuDevicePrimaryCtxRetain(Context **context, int device) {
  ENTER("cuDevicePrimaryCtxRetain", false);
  d.contexts[device].device = device;
  *context = &d.contexts[device];
  return ok;
}
Result cuCtxGetCurrent(Context **context) {
  *context = currentContext;
  return ok;
}
Result cuCtxSetCurrent(Context *context) {
  ENTER("cuCtxSetCurrent", false);
  currentContext = context;
  return ok;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER("cuMemGetInfo");
  *total = d.memoryLimit;
  *free = d.memoryLimit - d.used;
  return ok;
}
static Result allocate(Driver &d, uint64_t *address, size_t bytes, bool ready) {
  if (bytes == 0)
    return invalidValue;
  if (d.used + bytes > d.memoryLimit)
    return outOfMemory;
  void *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(memory, 0xcd, bytes);
  *address = reinterpret_cast<uintptr_t>(memory);
  d.memory[*address] = {bytes, ready};
  d.used += bytes;
  return ok;
}
Result cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER("cuMemAlloc");
  return allocate(d, address, bytes, true);
}
Result cuMemFree_v2(uint64_t address) {
  ENTER("cuMemFree");
  d.memory[address].freed = true;
  d.used -= d.memory[address].bytes;
  return ok;
}
Result cuMemPoolCreate(void **pool, const int *properties) {
  ENTER("cuMemPoolCreate");
  *pool = &d;
  bool right = properties[0] == 1 && properties[1] == 0 && properties[2] == 1 &&
               properties[3] == currentContext->device;
  return right ? ok : invalidValue;
}
Result cuMemPoolSetAttribute(void *, int attribute, void *value) {
  ENTER("cuMemPoolSetAttribute");
  d.poolAttributes[attribute] = *static_cast<uint64_t *>(value);
  return ok;
}
Result cuMemPoolGetAttribute(void *, int, void *value) {
  ENTER("cuMemPoolGetAttribute");
  *static_cast<uint64_t *>(value) = d.used;
  return ok;
}
Result cuMemPoolTrimTo(void *, size_t) {
  ENTER("cuMemPoolTrimTo");
  return ok;
}
Result cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *, Stream *stream) {
  ENTER("cuMemAllocFromPoolAsync");
  if (Result failure = allocate(d, address, bytes, false))
    return failure;
  return submit(stream, [&d, at = *address] { d.memory[at].ready = true; });
}
Result cuMemFreeAsync(uint64_t address, Stream *stream) {
  ENTER("cuMemFreeAsync");
  return submit(stream, [&d, address] {
    Allocation &allocation = d.memory[address];
    if (allocation.freed)
      ++d.violations;
    allocation.freed = true;
    d.used -= allocation.bytes;
    std::memset(pointer(address), 0xdd, allocation.bytes);
  });
}

Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  ENTER("cuMemcpyHtoDAsync");
  return submit(stream, [=] {
    touch(to, bytes);
    std::memcpy(pointer(to), from, bytes);
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  ENTER("cuMemcpyDtoHAsync");
  return submit(stream, [=] {
    touch(from, bytes);
    std::memcpy(to, pointer(from), bytes);
  });
}
Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  ENTER("cuMemcpyDtoDAsync");
  return submit(stream, [=] {
    touch(to, bytes);
    touch(from, bytes);
    std::memcpy(pointer(to), pointer(from), bytes);
  });
}
Result cuMemcpyPeerAsync(uint64_t to, Context *, uint64_t from, Context *, size_t bytes, Stream *stream) {
  ENTER("cuMemcpyPeerAsync");
  return submit(stream, [=] {
    touch(to, bytes);
    touch(from, bytes);
    std::memcpy(pointer(to), pointer(from), bytes);
  });
}
Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, Stream *stream) {
  ENTER("cuMemsetD8Async");
  return submit(stream, [=] {
    touch(to, count);
    std::memset(pointer(to), value, count);
  });
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER("cuMemHostAlloc");
  *memory = std::malloc(bytes);
  std::memset(*memory, 0xee, bytes);
  return flags == 3 ? ok : invalidValue;
}
Result cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned) {
  ENTER("cuMemHostGetDevicePointer");
  *address = reinterpret_cast<uintptr_t>(host);
  return ok;
}

Result cuStreamCreate(Stream **stream, unsigned flags) {
  ENTER("cuStreamCreate");
  *stream = new Stream{currentContext, {}};
  d.streams.insert(*stream);
  return flags == 1 ? ok : invalidValue;
}
Result cuStreamDestroy_v2(Stream *stream) {
  ENTER("cuStreamDestroy");
  d.streams.erase(stream);
  d.destroyed.insert(stream);
  return ok;
}
Result cuStreamSynchronize(Stream *stream) {
  ENTER("cuStreamSynchronize");
  if (stream->capture) {
    stream->capture->spoilt = true;
    return captureUnsupported;
  }
  runUntil(*stream, stream->queued);
  return ok;
}
Result cuStreamQuery(Stream *stream) {
  ENTER("cuStreamQuery");
  if (stream->capture) {
    stream->capture->spoilt = true;
    return captureUnsupported;
  }
  return stream->done < stream->queued ? notReady : ok;
}
Result cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  ENTER("cuStreamWaitEvent");
  if (event->capture) {
    stream->capture = event->capture;
    return ok;
  }
  if (!event->stream)
    return ok;
  return submit(stream, [other = event->stream, place = event->place] { runUntil(*other, place); });
}
Result cuLaunchHostFunc(Stream *stream, void (*function)(void *), void *data) {
  ENTER("cuLaunchHostFunc");
  return submit(stream, [=] { function(data); });
}
Result cuEventCreate(Event **event, unsigned flags) {
  ENTER("cuEventCreate");
  *event = new Event{currentContext, flags == 0};
  return ok;
}
Result cuEventDestroy_v2(Event *event) {
  delete event;
  return ok;
}
Result cuEventRecord(Event *event, Stream *stream) {
  ENTER("cuEventRecord");
  if (event->context != stream->context)
    return invalidHandle;
  event->capture = stream->capture;
  if (stream->capture)
    return ok;
  event->stream = stream;
  event->place = stream->queued + 1;
  return submit(stream, [&d, event] { event->time = d.clock; });
}
Result cuEventSynchronize(Event *event) {
  ENTER("cuEventSynchronize");
  if (event->capture)
    return capturedEvent;
  if (event->stream)
    runUntil(*event->stream, event->place);
  return ok;
}
Result cuEventQuery(Event *event) {
  ENTER("cuEventQuery");
  if (event->capture)
    return capturedEvent;
  return event->stream && event->stream->done < event->place ? notReady : ok;
}
Result cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
  ENTER("cuEventElapsedTime");
  if (!start->timing || !end->timing)
    return invalidHandle;
  *milliseconds = static_cast<float>(end->time - start->time);
  return ok;
}

Result cuModuleLoadDataEx(Module **module, const void *image, unsigned count, int *options, void **values) {
  ENTER("cuModuleLoadDataEx");
  d.jitOptions = collect(count, options, values);
  auto *text = static_cast<const char *>(image);
  bool elf = !std::strncmp(text, "\x7f" "ELF", 4);
  std::string ptx = elf ? text + elfBytes : text;
  if (Result failure = checkPtx(ptx, d.jitOptions))
    return failure;
  if (d.jitOptions.count(12))
    std::strcpy(static_cast<char *>(d.jitOptions[3]), "ptxas info    : Used 32 registers\n");
  *module = new Module{ptx, {}};
  d.modules.insert(*module);
  return ok;
}
Result cuModuleUnload(Module *module) {
  ENTER("cuModuleUnload");
  d.modules.erase(module);
  delete module;
  return ok;
}
Result cuModuleGetFunction(Function **function, Module *module, const char *name) {
  ENTER("cuModuleGetFunction");
  std::string entry = std::string(".entry ") + name + "(";
  size_t at = module->text.find(entry);
  if (at == std::string::npos)
    return notFound;
  Function *&found = module->functions[name];
  if (!found) {
    found = &d.functions.emplace_back();
    found->name = name;
    found->parameters = parametersOf(std::string_view(module->text).substr(at, module->text.find(')', at) - at));
  }
  *function = d.lastOfName[name] = found;
  return ok;
}
Result cuFuncGetAttribute(int *value, int attribute, Function *) {
  ENTER("cuFuncGetAttribute");
  static const std::map<int, int> values = {{0, 1024}, {1, 256}, {2, 0}, {3, 8}, {4, 40}};
  *value = values.at(attribute);
  return ok;
}
Result cuFuncSetAttribute(Function *function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  function->set[attribute] = value;
  return ok;
}
Result cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *bytes) {
  ENTER("cuFuncGetParamInfo");
  if (index >= function->parameters.size())
    return invalidValue;
  *offset = function->parameters[index].offset;
  *bytes = function->parameters[index].bytes;
  return ok;
}
Result cuLinkCreate_v2(unsigned count, int *options, void **values, Link **link) {
  ENTER("cuLinkCreate");
  *link = new Link{collect(count, options, values), {}};
  d.jitOptions = (*link)->options;
  return ok;
}
Result cuLinkAddData_v2(Link *link, int type, void *data, size_t bytes, const char *, unsigned, int *, void **) {
  ENTER("cuLinkAddData");
  auto *text = static_cast<const char *>(data);
  if (type != 1 || bytes == 0 || text[bytes - 1] != 0)
    return invalidValue;
  if (Result failure = checkPtx(text, link->options))
    return failure;
  link->image.assign(elfBytes, 0);
  std::memcpy(link->image.data(), "\x7f" "ELF\x02", 5);
  link->image.insert(link->image.end(), text, text + bytes);
  return ok;
}
Result cuLinkComplete(Link *link, void **cubin, size_t *bytes) {
  ENTER("cuLinkComplete");
  *cubin = link->image.data();
  *bytes = link->image.size();
  return ok;
}
Result cuLinkDestroy(Link *link) {
  ENTER("cuLinkDestroy");
  delete link;
  return ok;
}

Result cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned sharedBytes, Stream *stream, void **, void **extra) {
  ENTER("cuLaunchKernel");
  unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz}, cluster[] = {1, 1, 1};
  return launchFunction(function, grid, block, cluster, sharedBytes, stream, extra);
}
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream *stream;
  unsigned *attributes;
  unsigned attributeCount;
};
Result cuLaunchKernelEx(const LaunchConfig *config, Function *function, void **, void **extra) {
  ENTER("cuLaunchKernelEx");
  unsigned cluster[] = {1, 1, 1};
  int startsEarly = 0;
  for (unsigned i = 0; i < config->attributeCount; ++i) {
    const unsigned *attribute = config->attributes + 18 * i; // of 72 bytes: a number, 4 bytes of nothing, the value
    if (attribute[0] == 4)
      std::memcpy(cluster, attribute + 2, sizeof cluster);
    else if (attribute[0] == 6)
      startsEarly = static_cast<int>(attribute[2]);
    else
      return invalidValue;
  }
  return launchFunction(function, config->grid, config->block, cluster, config->sharedBytes, config->stream, extra,
                        startsEarly);
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *, int threads, size_t) {
  ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = d.blocksOfMultiprocessor;
  return threads > 0 ? ok : invalidValue;
}
Result cuOccupancyMaxActiveClusters(int *clusters, Function *, const LaunchConfig *config) {
  ENTER("cuOccupancyMaxActiveClusters");
  if (config->attributeCount != 1 || config->attributes[0] != 4 || config->attributes[2] < 2 ||
      config->grid[0] % config->attributes[2])
    return invalidValue;
  const char *chosen = std::getenv("FAKE_CUDA_CLUSTERS"); // in another process
  *clusters = chosen ? std::atoi(chosen) : d.clusters;
  return ok;
}
Result cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                              const uint64_t *strides, const unsigned *box, const unsigned *elementStrides,
                              int interleave, int swizzle, int l2Promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  fake::TensorMap made{};
  made.address = reinterpret_cast<uintptr_t>(address);
  bool right = reinterpret_cast<uintptr_t>(map) % 64 == 0 && rank >= 1 && rank <= 5 && made.address % 16 == 0;
  for (unsigned i = 0; i < rank && right; ++i) {
    made.sizes[i] = sizes[i];
    made.box[i] = static_cast<uint16_t>(box[i]);
    made.elementStrides[i] = static_cast<uint8_t>(elementStrides[i]);
    right = sizes[i] >= 1 && sizes[i] <= uint64_t(1) << 32 && box[i] >= 1 && box[i] <= 256 && elementStrides[i] == 1;
    if (i + 1 == rank)
      break;
    made.strides[i] = strides[i];
    right &= strides[i] % 16 == 0 && strides[i] < uint64_t(1) << 40;
  }
  made.type = static_cast<uint8_t>(type);
  made.rank = static_cast<uint8_t>(rank);
  made.interleave = static_cast<uint8_t>(interleave);
  made.swizzle = static_cast<uint8_t>(swizzle);
  made.l2Promotion = static_cast<uint8_t>(l2Promotion);
  made.fill = static_cast<uint8_t>(fill);
  if (!right)
    return invalidValue;
  std::memcpy(map, &made, sizeof made);
  return ok;
}

Result cuStreamBeginCapture_v2(Stream *stream, int mode) {
  ENTER("cuStreamBeginCapture");
  stream->capture = new Graph;
  return mode == 2 ? ok : invalidValue;
}
Result cuStreamEndCapture(Stream *stream, Graph **graph) {
  ENTER("cuStreamEndCapture");
  Graph *captured = stream->capture;
  for (Stream *other : d.streams)
    if (other->capture == captured)
      other->capture = nullptr;
  *graph = captured->spoilt ? nullptr : captured;
  return captured->spoilt ? captureInvalidated : ok;
}
Result cuStreamIsCapturing(Stream *stream, int *status) {
  ENTER("cuStreamIsCapturing");
  *status = stream->capture != nullptr;
  return ok;
}
Result cuGraphInstantiateWithFlags(Graph **exec, Graph *graph, unsigned long long) {
  ENTER("cuGraphInstantiate");
  *exec = new Graph(*graph);
  return ok;
}
Result cuGraphLaunch(Graph *exec, Stream *stream) {
  ENTER("cuGraphLaunch");
  for (const Operation &node : exec->nodes)
    submit(stream, node);
  return ok;
}
Result cuGraphExecDestroy(Graph *exec) {
  ENTER("cuGraphExecDestroy");
  delete exec;
  return ok;
}
Result cuGraphDestroy(Graph *graph) {
  ENTER("cuGraphDestroy");
  delete graph;
  return ok;
}
Result cuGraphGetNodes(Graph *graph, void **, size_t *count) {
  ENTER("cuGraphGetNodes");
  *count = graph->nodes.size();
  return ok;
}

} // extern "C"
#pragma GCC visibility pop
