// SPDX-License-Identifier: Apache-2.0
//
// The nvidia dialect: one GPU thread, with the hardware behind raw operands.
#ifndef TENON_NVIDIA_OPS_TD
#define TENON_NVIDIA_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nvidia_Dialect : Dialect {
  let name = "nvidia";
  let cppNamespace = "::tenon::nvidia";
  let summary = "What one thread of a GPU kernel does to the hardware";
  let description = [{
    Two things live here. Between tiles and threads: the layout that says which thread holds which element of a tile (the
    encoding of its tensor type), and the op that changes it. Below: one function per kernel that every thread runs,
    whose values are scalars and short vectors (arith, math, scf), and in which every memory access, every exchange between
    threads and every instruction of the matrix units is an op of this dialect. Addresses are integers: 64 bits for global
    memory, 32 bits for shared memory (relative to the start of the block's own). Descriptors are their raw bits.

    The same function becomes inline PTX for the GPU and calls for the simulator, so that a wrong address, swizzle or
    descriptor is wrong in both.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = [];
}

//===--------------------------------------------------------------------------------------------------------------===//
// Layouts
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_LayoutAttr : AttrDef<Nvidia_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "Which register of which lane, warp and block holds which element of a tile";
  let description = [{
    The bases of a linear layout (layout/LinearLayout.h), flattened: for each of register, lane, warp, block one entry of
    `rank` coordinates per bit. `#nvidia.layout<2, register = [0, 1], lane = [0, 2, 0, 4], warp = [1, 0], block = []>`:
    register bit 0 moves one column, lane bit 0 two columns, ... Extents are powers of two; what lies past the tile's own
    shape holds nothing.
  }];
  let parameters = (ins "int64_t":$rank, ArrayRefParameter<"int64_t">:$reg, ArrayRefParameter<"int64_t">:$lane,
                        ArrayRefParameter<"int64_t">:$warp, ArrayRefParameter<"int64_t">:$block);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class Nvidia_Op<string mnemonic, list<Trait> traits = []> : Op<Nvidia_Dialect, mnemonic, traits>;

def Nvidia_ConvertOp : Nvidia_Op<"convert", [Pure]> {
  let summary = "The same tile in another layout";
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Nvidia_AgainOp : Nvidia_Op<"again", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "The tile of a tile.load once more, unpacked anew from the words that were loaded";
  let description = [{
    For values that would otherwise wait for `after` in more registers than the words take: what is computed from the
    result looks different, to all that comes later, from what was computed from the operand, and is not joined with it.
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$after);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `after` $after attr-dict `:` type($value) `,` type($after)";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Program instances that several blocks share (threads/ShareTail.cpp)
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_ShareOp : Nvidia_Op<"share", [Pure]> {
  let summary = "Which of a loop's iterations fall to this block";
  let description = [{
    From `begin` to `end` of 0 to `iterations`. That is part number `part` of `parts`, whose results lie in slots from
    `slot` on; where there is one part, it is all of them.
  }];
  let arguments = (ins Index:$iterations);
  let results = (outs Index:$begin, Index:$end, Index:$part, Index:$parts, Index:$slot);
  let assemblyFormat = "$iterations attr-dict";
}

def Nvidia_CombineOp : Nvidia_Op<"combine", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The sums of what all parts of a loop gave, for whoever is the last to be done";
  let description = [{
    What the tiles are when `is_last` is false nobody should ask.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tiles, Index:$part, Index:$parts, Index:$slot, AnyType:$pieces,
                       AnyType:$arrived);
  let results = (outs Variadic<AnyRankedTensor>:$sums, I1:$is_last);
  let assemblyFormat = [{
    $tiles `part` $part `of` $parts `at` $slot `,` $pieces `,` $arrived attr-dict `:` type($tiles) `,` type($pieces) `,`
    type($arrived) `->` type($sums)
  }];
}

//===--------------------------------------------------------------------------------------------------------------===//
// Who am I
//===--------------------------------------------------------------------------------------------------------------===//

class Nvidia_IdOp<string mnemonic, string text> : Nvidia_Op<mnemonic, [Pure]> {
  let summary = text;
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}
def Nvidia_ThreadIdOp : Nvidia_IdOp<"thread_id", "This thread's number in its block (%tid.x)">;
def Nvidia_BlockIdOp : Nvidia_IdOp<"block_id", "This block's number in the grid (%ctaid.x)">;
def Nvidia_GridSizeOp : Nvidia_IdOp<"grid_size", "How many blocks the grid has (%nctaid.x)">;
def Nvidia_ClusterRankOp : Nvidia_IdOp<"cluster_rank", "This block's number in its cluster (%cluster_ctarank)">;

//===--------------------------------------------------------------------------------------------------------------===//
// Memory
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_Space : I32EnumAttr<"Space", "a memory space", [
    I32EnumAttrCase<"global", 0>,
    I32EnumAttrCase<"shared", 1>,   // the block's own, 32-bit addresses from 0
    I32EnumAttrCase<"cluster", 2>,  // another block's shared memory: an address from nvidia.map_shared
  ]> { let cppNamespace = "::tenon::nvidia"; }

def Nvidia_Address : AnyTypeOf<[I64, I32], "an address: i64 for global memory, i32 otherwise">;

def Nvidia_LoadOp : Nvidia_Op<"load", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "Reads one scalar or one vector of up to 16 bytes";
  let description = [{
    At `address + offset` bytes, which must be a multiple of the size of the access. Where `mask` is false nothing is
    touched and the result is `otherwise` (required with a mask). For shared memory `window` = [begin, end) bounds the bytes
    that all threads' executions of this op may touch, and `group` numbers accesses that belong to one exchange (their
    addresses are known not to conflict with each other): barriers are placed from them.
    `streaming`: the bytes will not be read again soon (L2 evict-first and no allocation in L1).
    `lasting`: of what is in the L2 cache, these bytes are the last to leave it (global memory).
  }];
  let arguments = (ins Nvidia_Space:$space, Nvidia_Address:$address, DefaultValuedAttr<I32Attr, "0">:$offset,
                       Optional<I1>:$mask, Optional<AnyType>:$otherwise, OptionalAttr<DenseI64ArrayAttr>:$window,
                       OptionalAttr<I32Attr>:$group, UnitAttr:$streaming, UnitAttr:$lasting);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $space $address (`mask` $mask^)? (`otherwise` $otherwise^ `:` type($otherwise))? attr-dict `:` type($address) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def Nvidia_StoreOp : Nvidia_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes one scalar or one vector of up to 16 bytes; where `mask` is false, nothing";
  let arguments = (ins Nvidia_Space:$space, AnyType:$value, Nvidia_Address:$address,
                       DefaultValuedAttr<I32Attr, "0">:$offset, Optional<I1>:$mask,
                       OptionalAttr<DenseI64ArrayAttr>:$window, OptionalAttr<I32Attr>:$group, UnitAttr:$streaming);
  let assemblyFormat = "$space $value `,` $address (`mask` $mask^)? attr-dict `:` type($value) `,` type($address)";
  let hasVerifier = 1;
}

def Nvidia_AtomicKind : I32EnumAttr<"AtomicKind", "an atomic update", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"fadd", 1>, I32EnumAttrCase<"smax", 2>, I32EnumAttrCase<"smin", 3>,
    I32EnumAttrCase<"umax", 4>, I32EnumAttrCase<"umin", 5>, I32EnumAttrCase<"exchange", 6>,
  ]> { let cppNamespace = "::tenon::nvidia"; }

def Nvidia_AtomicOp : Nvidia_Op<"atomic", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["value", "old"]>]> {
  let summary = "One atomic update of global memory at device scope; where `mask` is false, nothing, and zero";
  let description = "`fadd` is of floats, `exchange` of either, and the others are of integers.";
  let arguments = (ins Nvidia_AtomicKind:$kind, I64:$address, AnyTypeOf<[I32, I64, F32, F64]>:$value, Optional<I1>:$mask);
  let results = (outs AnyType:$old);
  let assemblyFormat = "$kind $address `,` $value (`mask` $mask^)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Nvidia_AtomicCasOp : Nvidia_Op<"atomic_cas", [MemoryEffects<[MemRead, MemWrite]>,
                                                  AllTypesMatch<["expected", "desired", "old"]>]> {
  let summary = "Compare and exchange in global memory at device scope; where `mask` is false, nothing, and zero";
  let arguments = (ins I64:$address, AnyTypeOf<[I32, I64]>:$expected, AnyTypeOf<[I32, I64]>:$desired,
                       Optional<I1>:$mask);
  let results = (outs AnyType:$old);
  let assemblyFormat = "$address `,` $expected `,` $desired (`mask` $mask^)? attr-dict `:` type($expected)";
}

def Nvidia_MapSharedOp : Nvidia_Op<"map_shared", [Pure]> {
  let summary = "The address, for space `cluster`, of a shared address in block `rank` of the cluster (mapa)";
  let arguments = (ins I32:$address, I32:$rank);
  let results = (outs I32:$result);
  let assemblyFormat = "$address `,` $rank attr-dict";
}

def Nvidia_StoreAsyncOp : Nvidia_Op<"store_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Sends 4 or 8 bytes to a block of the cluster, and as many to an mbarrier of that block (st.async)";
  let description = [{
    Both addresses are from nvidia.map_shared. Whoever waits for the phase of the mbarrier that the bytes complete sees
    the value; no fence or other barrier is needed. Earlier writes of the thread are not released by it. `window` =
    [begin, end) bounds the bytes, as for nvidia.store. Where `mask` is false, nothing.
  }];
  let arguments = (ins AnyTypeOf<[I32, I64]>:$value, I32:$address, I32:$mbarrier, Optional<I1>:$mask,
                       OptionalAttr<DenseI64ArrayAttr>:$window);
  let assemblyFormat = "$value `,` $address `,` $mbarrier (`mask` $mask^)? attr-dict `:` type($value)";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Asynchronous copies
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_CpAsyncOp : Nvidia_Op<"cp_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a copy of 4, 8 or 16 bytes from global to shared memory";
  let description = [{
    Only the first `source_bytes` are read; the rest of the destination becomes zero. Both addresses are multiples of
    `bytes`. Complete for this thread after the nvidia.cp_async_wait that covers its group.
  }];
  let arguments = (ins I32Attr:$bytes, I32:$shared, I64:$global, I32:$source_bytes,
                       OptionalAttr<DenseI64ArrayAttr>:$window, OptionalAttr<I32Attr>:$group);
  let assemblyFormat = "$bytes `,` $shared `,` $global `,` $source_bytes attr-dict";
  let hasVerifier = 1;
}
def Nvidia_CpAsyncCommitOp : Nvidia_Op<"cp_async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Closes this thread's group of copies started since the last one";
  let assemblyFormat = "attr-dict";
}
def Nvidia_CpAsyncWaitOp : Nvidia_Op<"cp_async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of this thread's groups are incomplete";
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tensor memory accelerator: boxes of tensors, copied by a unit of their own (sm_90)
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_TensorMapOp : Nvidia_Op<"tensor_map", [Pure]> {
  let summary = "The address of the kernel's tensor map of that number, a parameter that the launch encodes";
  let description = "The function's attribute nvidia.tensor_maps says how many there are.";
  let arguments = (ins I32Attr:$number);
  let results = (outs I64:$result);
  let assemblyFormat = "$number attr-dict";
  let hasVerifier = 1;
}

def Nvidia_PrefetchTensorMapOp : Nvidia_Op<"prefetch_tensor_map", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Brings a tensor map near, so that the first copy through it need not wait for it (prefetch.tensormap)";
  let arguments = (ins I64:$map);
  let assemblyFormat = "$map attr-dict";
}

def Nvidia_TmaLoadOp : Nvidia_Op<"tma_load", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Starts a copy of a tensor map's box from global to shared memory (cp.async.bulk.tensor)";
  let description = [{
    Executed by one thread. `coordinates` are those of the box's first element, innermost first, and may lie outside the
    tensor: elements outside arrive as zero. The box arrives in row-major order, swizzled as the map says by bits of the
    shared address, which is a multiple of 128 (with a swizzle over S bytes: the pattern repeats every 8 S bytes). When it
    is there, the mbarrier has received all bytes of the box, whether inside the tensor or not.

    With `multicast` each block of the cluster whose bit is set gets the box, at the same address, and its mbarrier at the
    same address gets the bytes. With `once` the L2 cache drops it before other things.
  }];
  let arguments = (ins I32:$shared, I64:$map, Variadic<I32>:$coordinates, I32:$mbarrier, Optional<I16>:$multicast,
                       UnitAttr:$once, OptionalAttr<DenseI64ArrayAttr>:$window, OptionalAttr<I32Attr>:$group);
  let assemblyFormat = [{
    $shared `,` $map `[` $coordinates `]` `,` $mbarrier (`multicast` $multicast^)? (`once` $once^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Nvidia_TmaPrefetchOp : Nvidia_Op<"tma_prefetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Asks for a tensor map's box to be in the L2 cache soon (cp.async.bulk.prefetch.tensor)";
  let description = [{
    Executed by one thread. Nothing waits for it and nothing is seen of it: all threads of the device see memory through
    that cache, so that it may even be asked for while an earlier kernel still writes it.
  }];
  let arguments = (ins I64:$map, Variadic<I32>:$coordinates);
  let assemblyFormat = "$map `[` $coordinates `]` attr-dict";
  let hasVerifier = 1;
}

def Nvidia_TmaStoreOp : Nvidia_Op<"tma_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a copy of a tensor map's box from shared to global memory; elements outside are left out";
  let description = [{
    Executed by one thread, in whose open group of bulk copies it goes. It reads shared memory through the asynchronous
    proxy: ordinary writes come before it by nvidia.fence proxy_async of the threads that wrote, and then a barrier.
  }];
  let arguments = (ins I64:$map, Variadic<I32>:$coordinates, I32:$shared, OptionalAttr<DenseI64ArrayAttr>:$window,
                       OptionalAttr<I32Attr>:$group);
  let assemblyFormat = "$map `[` $coordinates `]` `,` $shared attr-dict";
  let hasVerifier = 1;
}
def Nvidia_BulkCommitOp : Nvidia_Op<"bulk_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Closes this thread's group of bulk copies started since the last one";
  let assemblyFormat = "attr-dict";
}
def Nvidia_BulkWaitOp : Nvidia_Op<"bulk_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of this thread's groups of bulk copies are incomplete";
  let description = "With `read`: have not finished reading shared memory, which may then be written again.";
  let arguments = (ins I32Attr:$pending, UnitAttr:$read);
  let assemblyFormat = "(`read` $read^)? $pending attr-dict";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Order between threads
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_BarrierOp : Nvidia_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until `threads` threads of the block have arrived at barrier `id` (bar.sync), or `id` + `number`";
  let arguments = (ins DefaultValuedAttr<I32Attr, "0">:$id, I32Attr:$threads, Optional<I32>:$number);
  let assemblyFormat = "$threads (`plus` $number^)? attr-dict";
  let builders = [OpBuilder<(ins "int32_t":$id, "int32_t":$threads), [{
    build($_builder, $_state, static_cast<uint32_t>(id), static_cast<uint32_t>(threads), ::mlir::Value());
  }]>];
}
def Nvidia_WarpBarrierOp : Nvidia_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for all lanes of the warp and orders their memory accesses (bar.warp.sync)";
  let assemblyFormat = "attr-dict";
}
def Nvidia_ClusterArriveOp : Nvidia_Op<"cluster_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Says that this thread has reached the cluster's barrier, releasing its writes";
  let description = [{
    With `relaxed` it releases none, which is much cheaper: for mbarriers made before an nvidia.fence mbarrier_init, and
    to know that the other blocks have begun.
  }];
  let arguments = (ins UnitAttr:$relaxed);
  let assemblyFormat = "(`relaxed` $relaxed^)? attr-dict";
}
def Nvidia_ClusterWaitOp : Nvidia_Op<"cluster_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until every thread of the cluster has arrived, acquiring their writes";
  let assemblyFormat = "attr-dict";
}

def Nvidia_MbarrierInitOp : Nvidia_Op<"mbarrier_init", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Makes the 8 bytes at a shared address a barrier object that completes a phase after `count` arrivals";
  let arguments = (ins I32:$address, I32:$count);
  let assemblyFormat = "$address `,` $count attr-dict";
}
def Nvidia_MbarrierArriveOp : Nvidia_Op<"mbarrier_arrive", [MemoryEffects<[MemRead, MemWrite]>,
                                                            AttrSizedOperandSegments]> {
  let summary = "One arrival, releasing this thread's writes; with `bytes`, first expects that many of asynchronous copies";
  let description = [{
    With `cluster` the address is one from nvidia.map_shared: a barrier of another block of the cluster. Such an arrival
    publishes writes to threads of its own block only, and it may overtake reads of shared memory that come before it (seen
    on an H200: what was read had been written again by whoever had seen the arrival). Where it tells the other block
    that something has been read, that is `behind`: the arrival is made when it is there. It is a number that is not
    negative.
  }];
  let arguments = (ins I32:$address, Optional<I32>:$bytes, Optional<I32>:$behind, UnitAttr:$cluster);
  let builders = [OpBuilder<(ins "mlir::Value":$address, "mlir::Value":$bytes, "bool":$cluster), [{
    build($_builder, $_state, address, bytes, /*behind=*/mlir::Value(), cluster);
  }]>];
  let assemblyFormat = "(`cluster` $cluster^)? $address (`expect` $bytes^)? (`behind` $behind^)? attr-dict";
  let hasVerifier = 1;
}
def Nvidia_MbarrierWaitOp : Nvidia_Op<"mbarrier_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until the phase of the given parity has completed, acquiring what was released to it";
  let arguments = (ins I32:$address, I32:$parity);
  let assemblyFormat = "$address `,` $parity attr-dict";
}
def Nvidia_CpAsyncArriveOp : Nvidia_Op<"cp_async_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Arrives at an mbarrier once this thread's earlier cp_async copies are complete (.noinc)";
  let arguments = (ins I32:$address);
  let assemblyFormat = "$address attr-dict";
}

def Nvidia_FenceKind : I32EnumAttr<"FenceKind", "a fence", [
    I32EnumAttrCase<"block", 0>,        // fence.acq_rel.cta
    I32EnumAttrCase<"device", 1>,       // fence.acq_rel.gpu
    I32EnumAttrCase<"proxy_async", 2>,  // fence.proxy.async.shared::cta: ordinary writes before asynchronous reads
    I32EnumAttrCase<"mbarrier_init", 3> // fence.mbarrier_init.release.cluster
  ]> { let cppNamespace = "::tenon::nvidia"; }
def Nvidia_FenceOp : Nvidia_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Orders this thread's memory accesses";
  let arguments = (ins Nvidia_FenceKind:$kind);
  let assemblyFormat = "$kind attr-dict";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Order between kernels of a stream (sm_90)
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_AllowNextLaunchOp : Nvidia_Op<"allow_next_launch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The next kernel may start once every block has come here or ended (griddepcontrol.launch_dependents)";
  let description = [{
    If that kernel's launch says that it may start early, and where there is room beside this one. It promises nothing
    about memory: see nvidia.await_earlier_launches.
  }];
  let assemblyFormat = "attr-dict";
}
def Nvidia_AwaitEarlierLaunchesOp : Nvidia_Op<"await_earlier_launches", [MemoryEffects<[MemRead, MemWrite]>,
                                                                        SameVariadicOperandSize]> {
  let summary = "Waits until the kernel before this one is done, and its writes are to be seen (griddepcontrol.wait)";
  let description = [{
    Returns at once in a kernel that did not start early. In a function that has it no thread reads or writes global
    memory before (asking for it to be in the L2 cache is neither), and every thread executes it: then a kernel is done
    only after all before it, not just the last.

    With operands it waits where `address` and `zero` have no bit in common, which is always: `zero` is a word of the
    launch that is zero. The assembler does not know, and computes the address before it waits, where time is free;
    without operands it moves the wait in front of all that does not touch memory.
  }];
  let arguments = (ins Optional<I64>:$address, Optional<I64>:$zero);
  let assemblyFormat = "(`after` $address^ `unless` $zero)? attr-dict";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Exchange inside a warp. All 32 lanes take part.
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_ShuffleMode : I32EnumAttr<"ShuffleMode", "whose value a lane gets", [
    I32EnumAttrCase<"bfly", 0>, // lane ^ operand
    I32EnumAttrCase<"up", 1>,   // lane - operand, or its own
    I32EnumAttrCase<"down", 2>, // lane + operand, or its own
    I32EnumAttrCase<"idx", 3>,  // operand
  ]> { let cppNamespace = "::tenon::nvidia"; }
def Nvidia_ShuffleOp : Nvidia_Op<"shuffle", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["value", "result"]>]> {
  let summary = "The value of another lane (shfl.sync)";
  let arguments = (ins Nvidia_ShuffleMode:$mode, AnyTypeOf<[I32, F32]>:$value, I32:$lane);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$mode $value `,` $lane attr-dict `:` type($value)";
}
def Nvidia_VoteOp : Nvidia_Op<"vote", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One bit per lane: whether its condition holds (vote.sync.ballot)";
  let arguments = (ins I1:$condition);
  let results = (outs I32:$result);
  let assemblyFormat = "$condition attr-dict";
}

//===--------------------------------------------------------------------------------------------------------------===//
// Matrix units. All lanes of the warp take part; fragments are laid out as layout/Fragments.h says.
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_OperandType : I32EnumAttr<"OperandType", "the element type of a matrix operand", [
    I32EnumAttrCase<"f16", 0>, I32EnumAttrCase<"bf16", 1>, I32EnumAttrCase<"tf32", 2>, I32EnumAttrCase<"s8", 3>,
    I32EnumAttrCase<"u8", 4>, I32EnumAttrCase<"e4m3", 5>, I32EnumAttrCase<"e5m2", 6>, I32EnumAttrCase<"f64", 7>,
  ]> { let cppNamespace = "::tenon::nvidia"; }

def Nvidia_MmaOp : Nvidia_Op<"mma", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["c", "result"]>]> {
  let summary = "a * b + c on the matrix unit (mma.sync.aligned, row.col)";
  let description = [{
    | a, b | shape | a | b | c |
    |---|---|---|---|---|
    | f16, bf16 | m16n8k16 | vector<4xi32> | vector<2xi32> | vector<4xf32> |
    | tf32 | m16n8k8 | vector<4xi32> | vector<2xi32> | vector<4xf32> |
    | s8, u8 | m16n8k32 | vector<4xi32> | vector<2xi32> | vector<4xi32> |
    | e4m3, e5m2 (sm_89) | m16n8k32 | vector<4xi32> | vector<2xi32> | vector<4xf32> |
    | f64 | m8n8k4 | vector<1xf64> | vector<1xf64> | vector<2xf64> |
  }];
  let arguments = (ins Nvidia_OperandType:$a_type, Nvidia_OperandType:$b_type, AnyVectorOfAnyRank:$a,
                       AnyVectorOfAnyRank:$b, AnyVectorOfAnyRank:$c);
  let results = (outs AnyVectorOfAnyRank:$result);
  let assemblyFormat = "$a_type $b_type $a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}

def Nvidia_LdMatrixOp : Nvidia_Op<"ldmatrix", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads 1, 2 or 4 matrices of 8 x 8 16-bit elements from shared memory, optionally transposed";
  let description = "Lane 8 i + j gives the address of row j (16 bytes, aligned) of matrix i.";
  let arguments = (ins I32:$address, UnitAttr:$transpose, OptionalAttr<DenseI64ArrayAttr>:$window,
                       OptionalAttr<I32Attr>:$group);
  let results = (outs VectorOfLengthAndType<[1, 2, 4], [I32]>:$result);
  let assemblyFormat = "(`transpose` $transpose^)? $address attr-dict `->` type($result)";
  let hasVerifier = 1;
}
def Nvidia_StMatrixOp : Nvidia_Op<"stmatrix", [MemoryEffects<[MemWrite]>]> {
  let summary = "The mirror image of nvidia.ldmatrix (sm_90)";
  let arguments = (ins I32:$address, VectorOfLengthAndType<[1, 2, 4], [I32]>:$value, UnitAttr:$transpose,
                       OptionalAttr<DenseI64ArrayAttr>:$window, OptionalAttr<I32Attr>:$group);
  let assemblyFormat = "(`transpose` $transpose^)? $address `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Matrix units by warpgroup: the four warps 4 i to 4 i + 3 of a block together, asynchronously (sm_90a)
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_WgmmaFenceOp : Nvidia_Op<"wgmma_fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Orders writes of registers that the next nvidia.wgmma reads; before the first of a chain";
  let description = [{
    Operands `a` that are registers go through it, so that nothing writes them behind it.
  }];
  let arguments = (ins Variadic<I32>:$registers);
  let results = (outs Variadic<I32>:$results);
  let assemblyFormat = "(`(` $registers^ `)` `:` type($registers) `->` type($results))? attr-dict";
}
def Nvidia_WgmmaOp : Nvidia_Op<"wgmma", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Starts a * b + accumulators for 64 rows and n columns (wgmma.mma_async.sync.aligned)";
  let description = [{
    | a, b | shape | n | accumulators |
    |---|---|---|---|
    | f16, bf16 | m64nNk16 | 8, 16, ..., 256 | n / 2 f32 |
    | tf32 | m64nNk8 | 8, 16, ..., 256 | n / 2 f32 |
    | e4m3, e5m2 in any mixture | m64nNk32 | 8, 16, ..., 256 | n / 2 f32 |
    | s8, u8 in any mixture | m64nNk32 | 8, 24, and multiples of 16 up to 256 | n / 2 i32 |

    Accumulator 4 j + 2 h + i of lane l in warp w of the warpgroup is row 16 w + l / 4 + 8 h, column 8 j + l % 4 * 2 + i.
    Where `scale_d` is false they start as zero and are not read. The results hold nothing until an nvidia.wgmma_wait
    that covers the group and takes them has given them back; until then they may only be accumulators of a further
    nvidia.wgmma of the same shape.

    `b`, and `a` unless it is four registers (register r: row 16 w + l / 4 + 8 (r % 2), of whose 32 bytes along k the four
    from 4 (l % 4) + 16 (r / 2) on), are descriptors of operands in shared memory:

    | bits | |
    |---|---|
    | 0-13 | address, relative to the block's shared memory, / 16 |
    | 16-29 | leading dimension byte offset / 16 |
    | 32-45 | stride dimension byte offset / 16 |
    | 49-51 | base offset |
    | 62-63 | swizzle: 0 none, 1 over 128 bytes, 2 over 64, 3 over 32 |

    The operand is K-major, or MN-major with `trans_a`, `trans_b` (16-bit types only). With a swizzle over S bytes a
    K-major one has S bytes along k in a row, rows S apart, and 8 rows repeat each stride offset; an MN-major one has S
    bytes along m or n in a row, k rows S apart of which 8 repeat each stride offset, and the next S bytes along m or n
    come at each leading offset. Without one it consists of 8 x 16-byte matrices of 128 bytes: K-major, the next along k
    comes at each leading offset and the next along m or n at each stride offset; MN-major, the next along m or n at each
    stride offset and the next 8 along k at each leading offset.

    Shared memory is read through the asynchronous proxy: ordinary writes come before it by nvidia.fence proxy_async of
    the threads that wrote, and then a barrier. `window_a` and `window_b` = [begin, end) bound the bytes that may be read.
  }];
  let arguments = (ins Nvidia_OperandType:$a_type, Nvidia_OperandType:$b_type, I32Attr:$n, UnitAttr:$trans_a,
                       UnitAttr:$trans_b, Variadic<AnyTypeOf<[F32, I32]>>:$accumulators,
                       Variadic<AnyTypeOf<[I64, I32]>>:$a, I64:$b, I1:$scale_d,
                       OptionalAttr<DenseI64ArrayAttr>:$window_a, OptionalAttr<DenseI64ArrayAttr>:$window_b,
                       OptionalAttr<I32Attr>:$group);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = [{
    $a_type $b_type $n `[` $accumulators `]` `,` `(` $a `)` `,` $b `,` $scale_d attr-dict `:` type($a)
    custom<Accumulators>(ref($accumulators), type($accumulators), type($results))
  }];
  let hasVerifier = 1;
}
def Nvidia_WgmmaCommitOp : Nvidia_Op<"wgmma_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Closes the warpgroup's group of nvidia.wgmma started since the last one";
  let assemblyFormat = "attr-dict";
}
def Nvidia_WgmmaWaitOp : Nvidia_Op<"wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of the warpgroup's groups are incomplete, and hands accumulators on";
  let description = [{
    The results are the accumulators: those of complete groups may be read from here on. Those of a group that is not
    complete, which must be taken through every wait in between as well, still hold nothing.
  }];
  let arguments = (ins I32Attr:$pending, Variadic<AnyTypeOf<[F32, I32]>>:$accumulators);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = [{
    $pending `[` $accumulators `]` attr-dict custom<Accumulators>(ref($accumulators), type($accumulators), type($results))
  }];
  let hasVerifier = 1;
}

def Nvidia_SetMaxRegistersOp : Nvidia_Op<"set_max_registers", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Gives registers of the warpgroup's threads back, or waits for more (setmaxnreg)";
  let description = "To `count` for each thread: a multiple of 8 from 24 to 256. All warps of the warpgroup execute it.";
  let arguments = (ins I32Attr:$count, BoolAttr:$increase);
  let assemblyFormat = "$count attr-dict";
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Arithmetic that only the GPU has
//===--------------------------------------------------------------------------------------------------------------===//

def Nvidia_ApproxFunction : I32EnumAttr<"ApproxFunction", "a function of the special function unit", [
    I32EnumAttrCase<"ex2", 0>, I32EnumAttrCase<"rcp", 1>, I32EnumAttrCase<"rsqrt", 2>, I32EnumAttrCase<"lg2", 3>,
    I32EnumAttrCase<"tanh", 4>,
  ]> { let cppNamespace = "::tenon::nvidia"; }
def Nvidia_ApproxOp : Nvidia_Op<"approx", [Pure]> {
  let summary = "An approximation by the special function unit, subnormals kept";
  let description = [{
    | function | instruction | largest error |
    |---|---|---|
    | ex2 | ex2.approx.f32 | 2^-22 relative |
    | rcp | rcp.approx.f32 | 1 ulp |
    | rsqrt | rsqrt.approx.f32 | 2^-22.9 relative |
    | lg2 | lg2.approx.f32 | 2^-22 relative; absolute between 1/2 and 2, so that near 1 no digit need be right |
    | tanh | tanh.approx.f32 | 2^-11 relative |

    With `nvidia.flush` subnormal arguments and results of ex2 and rcp may become zero (.ftz), which saves instructions.
    The simulator computes the function in double and rounds once: it agrees with the unit within these errors, not bit
    for bit.
  }];
  let arguments = (ins Nvidia_ApproxFunction:$function, F32:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$function $value attr-dict";
}

def Nvidia_AnythingOp : Nvidia_Op<"anything", [Pure]> {
  let summary = "A register that holds anything: nobody reads it";
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Nvidia_PermuteBytesOp : Nvidia_Op<"permute_bytes", [Pure]> {
  let summary = "prmt.b32: byte i is that of number bits 4i..4i+2 of the selector (4 to 7: of `high`); bit 4i+3: its sign";
  let arguments = (ins I32:$low, I32:$high, I32:$selector);
  let results = (outs I32:$result);
  let assemblyFormat = "$low `,` $high `,` $selector attr-dict";
}

def Nvidia_PackOp : Nvidia_Op<"pack", [Pure]> {
  let summary = "Two f32 rounded to a 16-bit float (nearest, ties to even) in one 32-bit register, `low` in its low half";
  let arguments = (ins Nvidia_OperandType:$type, F32:$low, F32:$high);
  let results = (outs I32:$result);
  let assemblyFormat = "$type $low `,` $high attr-dict";
  let hasVerifier = 1;
}

#endif // TENON_NVIDIA_OPS_TD
