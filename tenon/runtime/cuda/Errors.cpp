// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Errors.h"

namespace tenon::cuda {
namespace {

struct Meaning {
  Result code;
  bool sticky;
  const char *text;
};

constexpr Meaning meanings[] = {
    {1, false, "an argument is outside what the driver or the device allows"},
    {2, false, "the device has no memory left for this; free tensors, or use smaller ones"},
    {4, false, "the program is ending and the driver is already shut down"},
    {34, false, "libcuda.so.1 is the toolkit's stub and not the driver; take the stubs folder out of the library path"},
    {36, false, "the installed NVIDIA driver is too old for this"},
    {46, false, "the device is in use by another process in exclusive mode, or has fallen off the bus"},
    {100, false, "the driver sees no device"},
    {101, false, "there is no device of this number"},
    {200, false, "the code is not a cubin or PTX that the driver can read; if it came from a cache, delete the entry"},
    {201, false, "no CUDA context is current in this thread, or it belongs to another process after fork()"},
    {209, false, "the code was compiled for another architecture than this device's; compile it for this one"},
    {214, true, "the device's memory had an error that could not be corrected; the hardware needs attention"},
    {218, false, "the assembler refused the PTX; its words follow"},
    {220, true, "the NVLink connection had an error that could not be corrected; the hardware needs attention"},
    {221, false, "the driver's PTX assembler (libnvidia-ptxjitcompiler) is not installed; install it with the driver"},
    {222, false, "the PTX is of a newer version than this driver knows; install a newer driver"},
    {226, true, "the device contained a memory error to this process"},
    {304, false, "a call to the operating system failed; often a limit on locked memory or open files"},
    {400, false, "a stream, event or module is used on another device than it was made on, or after it was destroyed"},
    {500, false, "no function of this name is in the module"},
    {700, true, "a kernel read or wrote memory that it was not given"},
    {701, false, "a block of this kernel needs more registers, threads or shared memory than a multiprocessor has; use "
                 "fewer warps or smaller tiles"},
    {702, true, "a kernel ran longer than the system allows on a device that also drives a display"},
    {709, true, "the device's context was destroyed by somebody else in this process"},
    {710, true, "an assertion of the device's own kind (trap) stopped a kernel"},
    {714, true, "a kernel overran its call stack, or its stack memory is damaged"},
    {715, true, "a kernel contains an instruction that this device does not have"},
    {716, true, "a kernel read or wrote an address that is not a multiple of the size of the access"},
    {717, true, "a kernel used an address of one memory with an instruction for another (shared, local, global)"},
    {718, true, "a kernel jumped to an address outside its code"},
    {719, true, "a kernel failed while running; often an illegal access to shared memory or a barrier"},
    {720, false, "more blocks than fit on the device at once were to wait for each other"},
    {800, false, "the call is not allowed here; functions that a stream runs on the host must not call CUDA"},
    {801, false, "this device or system does not support the operation"},
    {802, false, "the system is not ready: on a machine with NVSwitch the fabric manager must be running"},
    {803, false, "the driver's library and its kernel module are of different versions; reboot, or reload the module"},
    {804, false, "the forward-compatibility driver does not support this device"},
    {900, false, "the operation cannot be part of a captured graph"},
    {901, false, "an earlier operation spoilt the capture of this graph"},
    {904, false, "another stream joined the capture and was not joined back; record an event on it, and wait for that"},
    {906, false, "the operation would have made the captured stream depend on the default stream"},
    {907, false, "the event belongs to a graph that is being captured and has no time of its own"},
    {908, false, "the capture was begun by another thread"},
    {912, false, "the cluster does not fit: its size, or the shared memory and registers of its blocks together"},
};

const Meaning *find(Result result) {
  for (const Meaning &meaning : meanings)
    if (meaning.code == result)
      return &meaning;
  return nullptr;
}

} // namespace

std::string nameOf(const DriverApi &api, Result result) {
  const char *name = nullptr;
  if (api.cuGetErrorName(result, &name) != result::success || !name)
    return "CUDA error " + std::to_string(result);
  return name;
}

std::string describe(const DriverApi &api, Result result) {
  std::string text = nameOf(api, result);
  const char *words = nullptr;
  if (api.cuGetErrorString(result, &words) == result::success && words)
    text += std::string(" (") + words + ")";
  if (const Meaning *meaning = find(result))
    text += std::string(": ") + meaning->text;
  return text;
}

bool isSticky(Result result) {
  const Meaning *meaning = find(result);
  return meaning && meaning->sticky;
}

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace tenon::cuda
