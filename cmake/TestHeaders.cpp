// SPDX-License-Identifier: Apache-2.0
// Exists so that precompiled headers of tests have a target to belong to.
