// Which instruction sets are compiled: the baseline, SSE4, AVX2 and AVX-512 ("AVX3"). To be
// included before any Highway header.
#pragma once

#define HWY_DISABLED_TARGETS HWY_SSSE3
