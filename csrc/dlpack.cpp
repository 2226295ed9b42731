// DLPack (https://dmlc.github.io/dlpack): memory as a tensor that other libraries take over, with the Python object that
// keeps it alive. In C and not in Python, because a library may let go of a tensor while an exception is on its way, when no
// Python code may run. Python's functions are looked up: the core is not linked against any version of it.
#include <dlfcn.h>

#include <memory>

#include "status.h"

namespace atos {
namespace {

struct Tensor { // DLTensor
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

struct Unversioned { // DLManagedTensor
  Tensor tensor;
  void *owner;
  void (*deleter)(Unversioned *);
};

struct Versioned { // DLManagedTensorVersioned
  uint32_t major, minor;
  void *owner;
  void (*deleter)(Versioned *);
  uint64_t flags;
  Tensor tensor;
};

template <class F> F python(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)); }

// Whoever lets go of the tensor need not hold the interpreter's lock, and may come when there is no interpreter any more.
template <class Managed> void release(Managed *managed) {
  static const auto running = python<int (*)()>("Py_IsInitialized");
  static const auto lock = python<int (*)()>("PyGILState_Ensure");
  static const auto unlock = python<void (*)(int)>("PyGILState_Release");
  static const auto forget = python<void (*)(void *)>("Py_DecRef");
  if (running()) {
    const int state = lock();
    forget(managed->owner);
    unlock(state);
  }
  delete[] managed->tensor.shape;
  delete managed;
}

template <class Managed> Managed *make(const atos_dlpack &given) {
  auto shape = std::make_unique<int64_t[]>(2 * size_t(given.ndim) + 1);
  auto managed = std::make_unique<Managed>();
  managed->owner = given.owner;
  managed->deleter = release<Managed>;
  Tensor &tensor = managed->tensor;
  tensor.data = given.data;
  tensor.device_type = given.device_type;
  tensor.device_id = given.device_id;
  tensor.ndim = given.ndim;
  tensor.type_code = uint8_t(given.type_code);
  tensor.type_bits = uint8_t(given.type_bits);
  tensor.type_lanes = 1;
  tensor.shape = shape.release();
  tensor.strides = tensor.shape + given.ndim; // of a C-contiguous tensor; the standard wants them since version 1.2
  int64_t stride = 1;
  for (int32_t axis = given.ndim - 1; axis >= 0; --axis) {
    tensor.shape[axis] = given.shape[axis];
    tensor.strides[axis] = stride;
    stride *= given.shape[axis];
  }
  return managed.release();
}

} // namespace
} // namespace atos

using namespace atos;

extern "C" {

atos_status atos_dlpack_make(const atos_dlpack *given, void **managed) {
  return guarded([&] {
    if (!python<void *>("PyCapsule_IsValid"))
      throw Failure(ATOS_INVALID, "this process does not show Python's functions, which DLPack needs");
    if (given->versioned) {
      Versioned *made = make<Versioned>(*given);
      made->major = 1;
      made->flags = given->flags;
      *managed = made;
    } else {
      *managed = make<Unversioned>(*given);
    }
  });
}

// A consumer renames the capsule and calls the deleter itself.
void atos_dlpack_dispose(void *capsule) {
  static const auto valid = python<int (*)(void *, const char *)>("PyCapsule_IsValid");
  static const auto pointer = python<void *(*)(void *, const char *)>("PyCapsule_GetPointer");
  if (valid(capsule, "dltensor"))
    release(static_cast<Unversioned *>(pointer(capsule, "dltensor")));
  else if (valid(capsule, "dltensor_versioned"))
    release(static_cast<Versioned *>(pointer(capsule, "dltensor_versioned")));
}

} // extern "C"
