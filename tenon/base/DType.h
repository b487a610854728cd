// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// The element types of tiles, views and tensors. Signedness is a property of the language: in Tile IR integers are
/// signless and the operations carry it.
enum class DType : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16,
                       f8e4m3 = DType::f8e4m3, f8e5m2 = DType::f8e5m2;
inline constexpr DType i64 = DType::i64, i32 = DType::i32, i16 = DType::i16, i8 = DType::i8;
inline constexpr DType u64 = DType::u64, u32 = DType::u32, u16 = DType::u16, u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

inline constexpr DType allDTypes[] = {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64,    i32,
                                      i16, i8,  u64, u32,  u16,    u8,     boolean};

constexpr bool isFloat(DType type) { return type <= DType::f8e5m2; }
constexpr bool isFloat8(DType type) { return type == DType::f8e4m3 || type == DType::f8e5m2; }
constexpr bool isSigned(DType type) { return type >= DType::i64 && type <= DType::i8; }
constexpr bool isUnsigned(DType type) { return type >= DType::u64 && type <= DType::u8; }
/// Integers proper; a boolean is not one.
constexpr bool isInteger(DType type) { return isSigned(type) || isUnsigned(type); }

/// Bytes of one element in memory. A boolean is one byte, 0 or 1; any other byte reads as true.
constexpr size_t sizeOf(DType type) {
  switch (type) {
  case DType::f64: case DType::i64: case DType::u64: return 8;
  case DType::f32: case DType::i32: case DType::u32: return 4;
  case DType::f16: case DType::bf16: case DType::i16: case DType::u16: return 2;
  default: return 1;
  }
}

/// "f32", "bf16", "f8e4m3", "u8", "bool", ...
std::string_view nameOf(DType type);
std::optional<DType> parseDType(std::string_view name);

} // namespace tenon
#pragma GCC visibility pop
