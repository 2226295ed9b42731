"""Arrays on a device, and every protocol by which others' arrays come in and ours go out."""

from __future__ import annotations

import math
import sys
from types import EllipsisType, SimpleNamespace
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, ffi, lib
from ..errors import DeviceMemoryError, InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.validation import as_host_array, check_bool
from . import dlpack_export as dlpack
from .array_library import library_of
from .array_methods import ArrayMethods, shape_of
from .casting import cast_values
from .import_external import held_dtype, is_on_gpu, kept_dtype, memory_of
from .indexing import Element, Key, find_part
from .memory import check_alignment, check_shape, copy_bytes, fill_elements
from .on_host import to_host
from .shown import ShownArray

__all__ = ["Array", "asarray", "empty", "filled_array", "is_of_core", "new_array", "one_number", "to_host", "zeros"]

_SLOT, _ADDRESS = ffi.typeof("void **"), ffi.typeof("uintptr_t")  # parsed once


class Array(ShownArray, ArrayMethods):
    """A C-contiguous array on one device: what a task reads and writes.

    Make one with `asarray`, `full`, `zeros` or `empty`. From the host, elements and contiguous parts are read and written
    by indexing, which copies; `to_numpy` copies all. Comparisons are element by element, and give arrays of NumPy on the host,
    as those of NumPy do. In a task, a writable array is read coherently: a worker sees what the others wrote.

    Attributes
    ----------
    dtype : numpy.dtype
        Integers of 8 to 64 bits, float32, float64 or bool.
    shape : tuple of int
    device : Device
    readonly : bool
        Whether tasks may only read it. Reading is faster then.
    pointer : int
        Address of the first element.
    library : str or None
        "cupy", "torch" or "jax" if it was made from an array of that library.

    Examples
    --------
    >>> array = atos.full((2, 3), 7, dtype=np.int32)
    >>> array[1, 2] = 9
    >>> print(array[1], array.shape, array.to_numpy().sum())
    [7 7 9] (2, 3) 44
    >>> print(array == 7)
    [[ True  True  True]
     [ True  True False]]
    """

    __slots__ = ("__weakref__", "_owner", "device", "dtype", "library", "pointer", "readonly", "shape")

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device: Device,
        readonly: bool,
        owner: object,
        library: str | None = None,
    ) -> None:
        self.pointer = pointer
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.readonly = readonly
        self.library = library
        self._owner = owner  # keeps the memory alive

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the elements, and not the address."""
        return _remade, (self.to_numpy(), str(self.device), self.readonly, self.library)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    def _overlaps(self, other: Array) -> bool:
        here, there = self.pointer, other.pointer
        return here < there + other.nbytes and there < here + self.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedTypeError("an array without dimensions has no length")
        return self.shape[0]

    @host_memory_for("Array.to_numpy")
    def to_numpy(self) -> NDArray[Any]:
        """Return a copy on the host.

        Examples
        --------
        >>> atos.full(3, 7).to_numpy()
        array([7, 7, 7])
        """
        result = np.empty(self.shape, self.dtype)
        copy_bytes(self.device, result, self.pointer, self.nbytes)
        return result

    @host_memory_for("Array.fill")
    def fill(self, value: ArrayLike) -> None:
        """Write the same value everywhere; it has to fit the dtype.

        Examples
        --------
        >>> array = atos.zeros(3)
        >>> array.fill(2)
        >>> print(array[:])
        [2. 2. 2.]
        """
        self[...] = one_number(value)

    @host_memory_for("Array.copy")
    def copy(self) -> Array:
        """Return a copy on the same device, which may be written.

        Examples
        --------
        >>> array = atos.full(3, 7)
        >>> copy = array.copy()
        >>> copy[0] = 1
        >>> print(copy[:], array[:])
        [1 7 7] [7 7 7]
        """
        return asarray(self, copy=True)

    @host_memory_for("Array.astype")
    def astype(self, dtype: DTypeLike) -> Array:
        """Return a new array of another dtype on the same device, which may be written.

        Parameters
        ----------
        dtype : dtype
            As `atos.asarray` takes it. A number that it cannot hold is refused.

        Examples
        --------
        >>> atos.asarray([1, 2]).astype(np.float32).to_numpy()
        array([1., 2.], dtype=float32)
        """
        return asarray(self, dtype=dtype, copy=True)

    def reshape(self, *shape: Any) -> Array:
        """Return an array of another shape that shares the memory of this one.

        Parameters
        ----------
        *shape : int, or one tuple of int
            With as many elements. One length may be -1, which is what is left for it.

        Examples
        --------
        >>> array = atos.asarray([1, 2, 3, 4])
        >>> pairs = array.reshape(2, -1)
        >>> pairs[1, 0] = 9
        >>> print(pairs.shape, array[:])
        (2, 2) [1 2 9 4]
        """
        wanted = shape_of(self.shape, shape)
        return Array(self.pointer, wanted, self.dtype, self.device, self.readonly, self, self.library)

    @host_memory_for("a NumPy array of an array")
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and self.device.kind != "cpu":
            raise InvalidArgumentError(f"an array on {self.device} cannot become a NumPy array without a copy")
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise InvalidArgumentError(f"an array of {self.dtype} cannot become one of {np.dtype(dtype)} without a copy")
        result = self._host_view() if self.device.kind == "cpu" and not copy else self.to_numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    @host_memory_for("a copy of an array")
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule for the ``from_dlpack`` of another library, which shares the memory.

        Raises
        ------
        ExportError
            If it would take a copy that `copy` forbids, or if the array is read-only and the library is older than DLPack 1.0.
        """
        return dlpack.export(
            self,
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
            copied_to=lambda device: asarray(self, device=device, copy=True),
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_of(self)

    @overload
    def __getitem__(self, key: slice | EllipsisType) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: SupportsIndex | tuple[SupportsIndex | slice | EllipsisType, ...]) -> Element: ...
    @host_memory_for("a copy of a part of an array")
    def __getitem__(self, key: Key) -> Any:
        """Return an element as a NumPy scalar, or a contiguous part as a NumPy array; both are copies."""
        offset, shape = find_part(self.shape, key)
        result = np.empty(shape, self.dtype)
        copy_bytes(self.device, result, self.pointer + offset * self.dtype.itemsize, result.nbytes)
        return result if shape else result[()]

    @host_memory_for("what is written to an array")
    def __setitem__(self, key: Key, value: ArrayLike) -> None:
        """Write an element or a contiguous part; `value` is broadcast."""
        if self.readonly:
            raise InvalidArgumentError("the array is read-only; write to a copy: atos.asarray(array, copy=True)")
        offset, shape = find_part(self.shape, key)
        start = self.pointer + offset * self.dtype.itemsize
        given = value if isinstance(value, Array) else as_host_array("what is written", value)
        if isinstance(given, np.ndarray):
            given = cast_values(given, self.dtype)
            if given.ndim == 0:
                fill_elements(self.device, start, given, math.prod(shape))
                return
            try:
                given = np.ascontiguousarray(np.broadcast_to(given, shape))
            except ValueError:
                raise InvalidArgumentError(f"values of shape {given.shape} do not fit a part of shape {shape}") from None
            copy_bytes(self.device, start, given, given.nbytes)
        elif given.shape == shape and given.dtype == self.dtype:
            copy_bytes(self.device if self.device.kind == "cuda" else given.device, start, given.pointer, given.nbytes)
        else:
            what = f"an array of shape {given.shape} and dtype {given.dtype}"
            raise InvalidArgumentError(f"cannot write {what} to a part of shape {shape} and dtype {self.dtype}")

    def _host_view(self) -> NDArray[Any]:
        if isinstance(self._owner, np.ndarray):
            if not self.readonly:
                return self._owner
            view = self._owner.view()
            view.flags.writeable = False
            return view
        interface = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.pointer, self.readonly), "version": 3}
        return np.asarray(SimpleNamespace(__array_interface__=interface, owner=self._owner))  # the view keeps its base alive


@host_memory_for("atos.empty")
def empty(shape: int | tuple[int, ...], *, dtype: DTypeLike = np.float32, device: Device | str | None = None) -> Array:
    """Return a new array whose elements may be anything, which takes less time than `zeros` where it is large.

    See Also
    --------
    zeros : has the same parameters.
    full : another value.

    Examples
    --------
    >>> atos.empty((2, 3)).size
    6
    """
    return _allocate(shape, dtype, device, cleared=False)


@host_memory_for("atos.zeros")
def zeros(shape: int | tuple[int, ...], *, dtype: DTypeLike = np.float32, device: Device | str | None = None) -> Array:
    """Return a new array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
        float32 unless given.
    device : Device or str, optional
        Where to make it; the best device there is unless given.

    See Also
    --------
    full : another value, whose dtype is that of the array unless another is given.

    Examples
    --------
    >>> atos.zeros(3, dtype=np.int32).to_numpy()
    array([0, 0, 0], dtype=int32)
    """
    return _allocate(shape, dtype, device, cleared=True)


def _allocate(shape: int | tuple[int, ...], dtype: DTypeLike, device: Device | str | None, cleared: bool) -> Array:
    dimensions = check_shape(shape)
    kind = kept_dtype(dtype)
    return new_array(dimensions, kind, device_of(device), cleared)


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device, cleared: bool) -> Array:
    """Return a new array whose shape and dtype were looked at, of zeros if it is to be `cleared`."""
    slot = ffi.new(_SLOT)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= 2**63:
        raise DeviceMemoryError(f"an array of shape {shape} is larger than any memory")
    # Whole words, since atomics on smaller elements are done on the word around them.
    number = device.number
    status = lib.atos_allocate(number, -(-nbytes // 4) * 4, cleared, slot)
    if status:
        check(status)
    owner = ffi.gc(slot[0], lambda pointer: lib.atos_release(number, pointer))
    return Array(int(ffi.cast(_ADDRESS, owner)), shape, dtype, device, readonly=False, owner=owner)


def filled_array(n: int, value: np.generic, device: Device) -> Array:
    """Return a new array of n elements with a value and its dtype, of which nothing is checked as `full` does."""
    made = new_array((n,), value.dtype, device, cleared=False)
    fill_elements(device, made.pointer, value, n)
    return made


def is_of_core(array: Array) -> bool:
    """Whether the memory of an array was allocated by the core, and not by another library."""
    owner: object = array
    while isinstance(owner, Array):
        owner = owner._owner
    return isinstance(owner, ffi.CData)


def one_number(value: Any) -> NDArray[Any]:
    """Return a number that an array is filled with."""
    element = as_host_array("value", value)
    if element.ndim:
        raise InvalidArgumentError(f"value must be one number (got shape {element.shape}); for several there is atos.asarray")
    return element


def _remade(values: NDArray[Any], device: str, readonly: bool, library: str | None) -> Array:
    """Return the array that was copied or pickled, which results are like where its library is imported."""
    made = asarray(values, device=device, readonly=readonly)
    made.library = library if library in sys.modules else None
    return made


@host_memory_for("atos.asarray")
def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    readonly: bool = False,
    copy: bool = False,
) -> Array:
    """Return an array with the elements of `obj`, without a copy where that is possible.

    Parameters
    ----------
    obj : array_like
        An `Array`, a NumPy array or what NumPy makes one of, or an array that has ``__cuda_array_interface__`` or DLPack: of
        CuPy, PyTorch, JAX or Numba, on the CPU or a GPU.
    dtype : dtype, optional
        Of the elements; by default as they are, but a copy has float32 for halves, and the machine's order of bytes.
    device : Device or str, optional
        Where the array shall be; by default where `obj` is if that is a GPU, otherwise the best device there is.
    readonly : bool
        Whether tasks may only read it, which is faster. What is read-only already stays so unless it is copied.
    copy : bool
        Whether to copy in any case. Otherwise the array shares the memory of `obj` if device, dtype and layout allow, and
        what tasks write is seen in `obj`. An array of JAX, which never changes, is shared as a read-only one.

    Raises
    ------
    InvalidArgumentError
        If the array would be shared, and its elements are not aligned to their size.

    Examples
    --------
    >>> numbers = np.arange(4)
    >>> array = atos.asarray(numbers, device="cpu")  # shares the memory of numbers
    >>> array[0] = 9
    >>> numbers
    array([9, 1, 2, 3])
    """
    readonly, copy = check_bool("readonly", readonly), check_bool("copy", copy)
    result = _asarray(obj, dtype, device, readonly, copy)
    result.library = library_of(obj)
    return result


def _asarray(obj: Any, dtype: DTypeLike | None, device: Device | str | None, readonly: bool, copy: bool) -> Array:
    if isinstance(obj, Array):
        source = obj
    elif is_on_gpu(obj):
        pointer, shape, found, where, locked, owner = memory_of(obj)
        source = Array(pointer, shape, found, where, readonly=locked, owner=owner)
    else:
        return _from_host(as_host_array("what is given", to_host(obj)), dtype, device_of(device), readonly, copy)
    target = source.device if device is None else device_of(device)
    kind = source.dtype if dtype is None else kept_dtype(dtype)
    if kind != source.dtype:
        return _from_host(source.to_numpy(), kind, target, readonly, copy=False)
    if copy or target != source.device:
        result = zeros(source.shape, dtype=kind, device=target)
        copy_bytes(target if target.kind == "cuda" else source.device, result.pointer, source.pointer, source.nbytes)
        result.readonly = readonly
        return result
    check_alignment(source.pointer, source.size, kind)
    if source.readonly and not readonly and source is not obj:
        readonly = True
    if source.readonly == readonly:
        return source
    return Array(source.pointer, source.shape, source.dtype, source.device, readonly or source.readonly, source._owner)


def _from_host(source: NDArray[Any], dtype: DTypeLike | None, target: Device, readonly: bool, copy: bool) -> Array:
    kind = kept_dtype(held_dtype(source.dtype) if dtype is None else dtype)
    values = np.ascontiguousarray(cast_values(source, kind)).reshape(source.shape)
    if target.kind == "cpu":
        if copy and np.shares_memory(values, source):
            values = values.copy()
        check_alignment(values.ctypes.data, values.size, kind)
        return Array(
            values.ctypes.data, values.shape, kind, target, readonly=readonly or not values.flags.writeable, owner=values
        )
    result = zeros(values.shape, dtype=kind, device=target)
    copy_bytes(target, result.pointer, values, values.nbytes)
    result.readonly = readonly
    return result
