"""The competitors, each a program of its own: rows in, rows out, as Parquet files.

Each runs in the Python that has its library, whatever else that has; nothing here but `flow` may import `tessella`.
"""
