// SPDX-License-Identifier: Apache-2.0
// Some hypervisors let a guest use AMX but answer CPUID leaves 0x1D and 0x1E, which describe its tiles, with zeros. oneDNN
// takes the shape of a tile from there, configures none, and dies of its first tile instruction. Loaded before it
// (LD_PRELOAD), this answers those two leaves as every processor with AMX does, so that peers are measured at their best.
// Where the kernel cannot trap CPUID, oneDNN is told to do without AMX instead. On other machines it does nothing.
// TENON_PEERS_AMX says which, for the record.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { setCpuid = 0x1012, bytesOfCpuid = 2 };
static struct sigaction earlier;

static long allowCpuid(int allowed) { return syscall(SYS_arch_prctl, setCpuid, allowed); }

/// What the manual gives for palette 1: 8 KiB in 8 tiles of 16 rows of 64 bytes; and the multiplier's 16 x 64.
static void describeTiles(unsigned leaf, unsigned subleaf, unsigned answer[4]) {
  static const unsigned palettes[4] = {1, 0, 0, 0}, palette1[4] = {1024 << 16 | 8192, 8 << 16 | 64, 16, 0},
                        multiplier[4] = {0, 64 << 8 | 16, 0, 0};
  const unsigned *known = leaf == 0x1E ? multiplier : subleaf == 1 ? palette1 : palettes;
  memcpy(answer, known, sizeof(palettes));
}

static void onFault(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *code = (const unsigned char *)registers[REG_RIP];
  if (info->si_code != SI_KERNEL || code[0] != 0x0F || code[1] != 0xA2) {
    sigaction(signal, &earlier, NULL); // a fault of the program's own: it happens again, and is what it was
    if (info->si_code <= 0)            // somebody sent it
      raise(signal);
    return;
  }
  unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], answer[4];
  if (leaf == 0x1D || leaf == 0x1E) {
    describeTiles(leaf, subleaf, answer);
  } else {
    allowCpuid(1);
    __cpuid_count(leaf, subleaf, answer[0], answer[1], answer[2], answer[3]);
    allowCpuid(0);
  }
  registers[REG_RAX] = answer[0], registers[REG_RBX] = answer[1];
  registers[REG_RCX] = answer[2], registers[REG_RDX] = answer[3];
  registers[REG_RIP] += bytesOfCpuid;
}

__attribute__((constructor)) static void tellPalette(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1)) // AMX-TILE
    return;
  if (__get_cpuid_count(0x1D, 1, &a, &b, &c, &d) && a != 0)
    return;
  struct sigaction action = {.sa_sigaction = onFault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigaction(SIGSEGV, &action, &earlier);
  if (allowCpuid(0) == 0) {
    setenv("TENON_PEERS_AMX", "palette supplied, the hypervisor hides it", 1);
  } else {
    sigaction(SIGSEGV, &earlier, NULL);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 1);
    setenv("TENON_PEERS_AMX", "not used by oneDNN, the hypervisor hides its palette", 1);
  }
}
