"""Arrays for libraries of tables, by Arrow's protocols: PyArrow or polars makes them of the array as NumPy has it.

Neither is imported where the other is in use already, since that is most likely the one that asks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, MissingPackageError
from ..support.host_memory import host_memory_for

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ArrowExport"]


class ArrowExport:
    """Base class of arrays that polars, PyArrow and others take as a column, which shares the memory where that is on a CPU."""

    __slots__ = ()

    shape: Any

    @host_memory_for("a column of an array")
    def __arrow_array__(self, type: pyarrow.DataType | None = None) -> pyarrow.Array:
        """Return the elements as an array of PyArrow, which ``pyarrow.array`` and ``pyarrow.table`` ask for."""
        values = self._column()
        try:
            import pyarrow
        except ImportError as error:
            raise MissingPackageError("a column of Arrow needs PyArrow: python -m pip install pyarrow") from error
        return pyarrow.array(values, type=type)

    @host_memory_for("a column of an array")
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with Arrow's C stream of the elements, which ``polars.Series`` and other libraries ask for."""
        polars = sys.modules.get("polars")
        if polars is not None and sys.modules.get("pyarrow") is None:
            return polars.Series(values=self._column()).__arrow_c_stream__(requested_schema)
        column = self.__arrow_array__()
        import pyarrow

        return pyarrow.chunked_array([column]).__arrow_c_stream__(requested_schema)

    def _column(self) -> NDArray[Any]:
        if len(self.shape) != 1:
            raise InvalidArgumentError(
                f"a column of a table has one dimension (got shape {self.shape}); give array.reshape(-1), or an array for each"
                " column"
            )
        return np.asarray(self)
