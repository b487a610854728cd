// SPDX-License-Identifier: Apache-2.0
// Precompiled: what most tests include.
#pragma once

#include "tenon/tenon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
