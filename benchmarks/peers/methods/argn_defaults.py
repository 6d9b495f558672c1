"""mostlyai-engine's `TabularARGN`, as it comes: rare values protected, any order of the columns, its own encodings."""

from benchmarks.peers.methods.argn import LIBRARIES, learn
from benchmarks.peers.methods.exchange import serve

if __name__ == "__main__":
    serve(learn, *LIBRARIES)
