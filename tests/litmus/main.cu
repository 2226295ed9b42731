// Runs the programs of the other files: `main SECONDS INSTANCES SEED`. Prints the card, and for each program that can run here
// a line with its number, and how many instances there were, met all needs, and ended as must never be.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "harness.cuh"

namespace litmus {
namespace {

void check(cudaError_t status, const char *call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Begin {
  int value[kMostWords];
};

__global__ void prepare(const Launch launch, const Begin begin) {
  const size_t all = size_t(launch.words_of_program) * launch.instances;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < all; i += size_t(gridDim.x) * blockDim.x) {
    launch.words[i << launch.shift] = begin.value[i / launch.instances];
  }
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Chip {
public:
  explicit Chip(unsigned seed) : chance_(seed) {
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    int reach = 0;
    if (count > 1) CHECK(cudaDeviceCanAccessPeer(&reach, 1, 0));
    gpus_ = reach ? 2 : 1;
    for (unsigned gpu = gpus_; gpu-- > 0;) { // the first one is the last to be set
      CHECK(cudaSetDevice(int(gpu)));
      if (gpu > 0) CHECK(cudaDeviceEnablePeerAccess(0, 0));
      CHECK(cudaDeviceGetAttribute(&sms_[gpu], cudaDevAttrMultiProcessorCount, int(gpu)));
    }
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    bytes_ = std::min(free / 4, size_t(8) << 30);
    CHECK(cudaMalloc(&launch_.words, bytes_));
    CHECK(cudaMalloc(&launch_.registers, bytes_ / 4));
    CHECK(cudaMalloc(&launch_.ended, bytes_ / 4));
    CHECK(cudaMalloc(&launch_.gates, kMostGroups * kLine * sizeof(unsigned)));
    CHECK(cudaMalloc(&launch_.running, sizeof(unsigned)));
    CHECK(cudaMalloc(&launch_.scratch, size_t(kScratchLines) * kLine * sizeof(int)));
    CHECK(cudaMemset(launch_.scratch, 0, size_t(kScratchLines) * kLine * sizeof(int)));
    CHECK(cudaMalloc(&counts_, sizeof(Counts)));
    for (unsigned *&role : roles_) CHECK(cudaMalloc(&role, kMostGroups * sizeof(unsigned)));
  }

  bool can_run(const Description &program) const { return program.gpus <= gpus_; }

  void print_card() const {
    cudaDeviceProp card;
    int runtime = 0, driver = 0;
    CHECK(cudaGetDeviceProperties(&card, 0));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    std::printf("%u x %s,CUDA %d.%d with a driver for %d.%d\n", gpus_, card.name, runtime / 1000, runtime / 10 % 100,
                driver / 1000, driver / 10 % 100);
  }

  // Runs instances until there are so many, or the time is over: launches, each under another stress.
  void run(const Description &program, unsigned long long wanted, double until) {
    unsigned long long instances = 0;
    CHECK(cudaMemset(counts_, 0, sizeof(Counts)));
    do {
      launch(program);
      instances += launch_.instances;
    } while (instances < wanted && now() < until);
    Counts counts;
    CHECK(cudaMemcpy(&counts, counts_, sizeof counts, cudaMemcpyDeviceToHost));
    std::printf("%u,%llu,%llu,%llu\n", program.number, instances, counts.met, counts.seen);
    std::fflush(stdout);
  }

private:
  static constexpr unsigned kMostGroups = 4096, kMostRounds = 64;

  unsigned one_of(std::initializer_list<unsigned> choices) { return choices.begin()[chance_() % choices.size()]; }

  void launch(const Description &program) {
    const unsigned gpus = program.gpus;
    launch_.groups = kMostGroups / 2;
    launch_.blocks = 0;
    for (unsigned gpu = 0; gpu < gpus; ++gpu) {
      launch_.groups = std::min(launch_.groups, 2 * unsigned(sms_[gpu]) / program.blocks[gpu]);
      launch_.blocks += program.blocks[gpu];
    }
    launch_.slots = program.slots;
    launch_.words_of_program = program.words;
    launch_.seed = unsigned(chance_());
    launch_.shift = one_of({0, 0, 3, 5});
    launch_.delay = one_of({0, 64, 512, 2048, 8192});
    launch_.warm = one_of({0, 128, 256});
    launch_.mixed = one_of({0, 1});
    launch_.spread = one_of({0, 15, 255, kScratchLines - 1});
    launch_.pattern = unsigned(chance_());
    const size_t each =
        std::max<size_t>({size_t(program.words) << launch_.shift, 4u * program.registers, 4u * program.threads});
    const size_t fit = bytes_ / sizeof(int) / each / (size_t(launch_.groups) * launch_.slots);
    launch_.rounds = unsigned(std::min<size_t>(kMostRounds, fit));
    launch_.instances = launch_.groups * launch_.slots * launch_.rounds;

    Begin begin;
    std::copy(std::begin(program.begin), std::end(program.begin), begin.value);
    prepare<<<4 * sms_[0], 256>>>(launch_, begin);
    CHECK(cudaGetLastError());
    CHECK(cudaMemset(launch_.gates, 0, kMostGroups * kLine * sizeof(unsigned)));
    const unsigned running = launch_.groups * launch_.blocks;
    CHECK(cudaMemcpy(launch_.running, &running, sizeof running, cudaMemcpyHostToDevice));
    unsigned all[kMostGpus] = {};
    for (unsigned gpu = 0; gpu < gpus; ++gpu) {
      all[gpu] = launch_.groups * program.blocks[gpu] + one_of({0, unsigned(sms_[gpu]) / 2, unsigned(sms_[gpu])});
      std::vector<unsigned> role(all[gpu]);
      std::iota(role.begin(), role.end(), 0u);
      std::shuffle(role.begin(), role.end(), chance_);
      CHECK(cudaMemcpy(roles_[gpu], role.data(), role.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    }
    CHECK(cudaDeviceSynchronize());
    for (unsigned gpu = 0; gpu < gpus; ++gpu) {
      launch_.gpu = gpu;
      launch_.blocks_here = program.blocks[gpu];
      launch_.role = roles_[gpu];
      std::copy_n(&program.thread[gpu][0][0], kMostBlocks * kMostThreads, &launch_.thread[0][0]);
      CHECK(cudaSetDevice(int(gpu)));
      program.run<<<all[gpu], kBlockSize>>>(launch_);
      CHECK(cudaGetLastError());
    }
    for (unsigned gpu = gpus; gpu-- > 0;) {
      CHECK(cudaSetDevice(int(gpu)));
      CHECK(cudaDeviceSynchronize());
    }
    program.count<<<4 * sms_[0], 256>>>(launch_, counts_);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }

  std::mt19937 chance_;
  unsigned gpus_ = 1;
  int sms_[kMostGpus] = {};
  size_t bytes_ = 0;
  unsigned *roles_[kMostGpus] = {};
  Counts *counts_ = nullptr;
  Launch launch_ = {};
};

} // namespace

std::vector<Description> &programs() {
  static std::vector<Description> all;
  return all;
}

bool add_programs(const std::vector<Description> &more) {
  programs().insert(programs().end(), more.begin(), more.end());
  return true;
}

} // namespace litmus

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "%s SECONDS INSTANCES SEED\n", argv[0]);
    return 2;
  }
  const double end = litmus::now() + std::atof(argv[1]);
  litmus::Chip chip(unsigned(std::strtoul(argv[3], nullptr, 10)));
  chip.print_card();
  std::vector<litmus::Description> mine;
  for (const litmus::Description &each : litmus::programs()) {
    if (chip.can_run(each)) mine.push_back(each);
  }
  for (size_t i = 0; i < mine.size(); ++i) {
    const double start = litmus::now(), share = (end - start) / double(mine.size() - i);
    chip.run(mine[i], std::strtoull(argv[2], nullptr, 10), start + share);
  }
}
