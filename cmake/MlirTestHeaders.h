// SPDX-License-Identifier: Apache-2.0
// Precompiled: what most tests of compiler files include.
#pragma once

#include "cmake/MlirHeaders.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
