// Export by DLPack (https://dmlc.github.io/dlpack): memory as a tensor that other libraries take over, with the Python object
// that keeps it alive. In C and not in Python, because a library may let go of a tensor while an exception is on its way, when
// no Python code may run. Python's functions are looked up: the core is not linked against any version of it.
#include <dlfcn.h>
#include <dlpack/dlpack.h>

#include <memory>

#include "host/status.h"

namespace atos {
namespace {

template <class F> F python(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)); }

// Whoever lets go of the tensor need not hold the interpreter's lock, and may come when there is no interpreter any more.
template <class Managed> void release(Managed *managed) {
  static const auto running = python<int (*)()>("Py_IsInitialized");
  static const auto lock = python<int (*)()>("PyGILState_Ensure");
  static const auto unlock = python<void (*)(int)>("PyGILState_Release");
  static const auto forget = python<void (*)(void *)>("Py_DecRef");
  if (running()) {
    const int state = lock();
    forget(managed->manager_ctx);
    unlock(state);
  }
  delete[] managed->dl_tensor.shape;
  delete managed;
}

template <class Managed> Managed *make(const atos_dlpack &given) {
  auto shape = std::make_unique<int64_t[]>(2 * size_t(given.ndim) + 1);
  auto managed = std::make_unique<Managed>();
  managed->manager_ctx = given.owner;
  managed->deleter = release<Managed>;
  DLTensor &tensor = managed->dl_tensor;
  tensor.data = given.data;
  tensor.device = {DLDeviceType(given.device_type), given.device_id};
  tensor.ndim = given.ndim;
  tensor.dtype = {uint8_t(given.type_code), uint8_t(given.type_bits), 1};
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
      auto *made = make<DLManagedTensorVersioned>(*given);
      made->version = {DLPACK_MAJOR_VERSION, 0}; // nothing in it is newer than 1.0
      made->flags = given->flags;
      *managed = made;
    } else {
      *managed = make<DLManagedTensor>(*given);
    }
  });
}

// A consumer renames the capsule and calls the deleter itself.
void atos_dlpack_dispose(void *capsule) {
  static const auto valid = python<int (*)(void *, const char *)>("PyCapsule_IsValid");
  static const auto pointer = python<void *(*)(void *, const char *)>("PyCapsule_GetPointer");
  if (valid(capsule, "dltensor")) release(static_cast<DLManagedTensor *>(pointer(capsule, "dltensor")));
  else if (valid(capsule, "dltensor_versioned"))
    release(static_cast<DLManagedTensorVersioned *>(pointer(capsule, "dltensor_versioned")));
}

} // extern "C"
