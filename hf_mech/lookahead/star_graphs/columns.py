"""Arrays of tokens as columns of fixed width."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def token_type(vocabulary: int) -> str:
    """The smallest type of a column of tokens and labels: a quarter of the disk for most vocabularies."""
    return "int16" if vocabulary <= np.iinfo(np.int16).max else "int32"


def arrow_table(columns: Mapping[str, NDArray[np.int64]], vocabulary: int) -> pa.Table:
    """Columns [count, width] of tokens of a vocabulary of that size as a table of lists."""
    kind = token_type(vocabulary)
    return pa.table(
        {
            name: pa.FixedSizeListArray.from_arrays(pa.array(rows.astype(kind).reshape(-1)), rows.shape[1])
            for name, rows in columns.items()
        }
    )
