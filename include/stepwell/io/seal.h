// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"
#include "stepwell/io/blake3.h"
#include "stepwell/io/file.h"

// A seal is the BLAKE3 hash of a file's bytes in a file beside it, NAME.b3, as b3sum writes it: `b3sum --check NAME.b3`
// in the folder checks it too.
namespace stepwell::io {

std::string seal_path(const std::string& path);

// Writes the seal of the file as it is now.
void write_seal(const std::string& path);

// Removes the old seal, calls `write`, which writes the file, and seals it. A process killed at any moment leaves a
// file without a seal or one with the right seal.
void write_sealed(const std::string& path, FunctionRef<void()> write);

enum class SealState { Intact, Changed, MissingFile, MissingSeal };

// Compares file and seal. Throws Error (File) for a seal that is no seal, and when one of the two cannot be read.
SealState verify_seal(const std::string& path);

enum class SealRule { IfPresent, Required };

// The bytes of the file, once they are known to be the sealed ones: what is parsed afterwards is what was verified.
// Throws Error (File) that tells a changed file from a missing file and, if a seal is required, from a missing seal.
MappedFile open_sealed(const std::string& path, SealRule rule = SealRule::IfPresent);
// The same against a hash that the caller knows.
MappedFile open_sealed(const std::string& path, const Digest& expected);

// One hash for the values of parameters, whatever file holds them and in whatever order they are given: BLAKE3 over,
// for each tensor in order of its name, the name, the dtype's name, the rank, the extents and the bytes. Names are
// preceded by their lengths; all integers have 64 bits, little-endian. Throws Error (Argument) for a name given twice.
Digest parameters_hash(std::span<const std::pair<std::string, Tensor>> parameters);

}  // namespace stepwell::io
