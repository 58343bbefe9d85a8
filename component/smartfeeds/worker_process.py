"""The process that reads documents of strangers, one after the other (`workers` starts it).

A request on standard input is a pickle of the limits, a function and its arguments. A reply on standard output is the
result or the error, with its length. The process ends when standard input does, so it does not outlive the service.
"""

import os
import pickle
import resource
import signal
import time
import traceback
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import IO, Final, NamedTuple

from smartfeeds.errors import SmartfeedsError
from smartfeeds.worker_codec import dump_value

LENGTH: Final = Struct(">Q")
OUT_OF_MEMORY: Final = 77  # the exit code after a document that needs more memory than the limit

# A process that has grown by so much is replaced: the allocator returns little of what a large document took.
GROWTH_BYTES: Final = 64 * 1024 * 1024
CPU_BYTES_PER_S: Final = 2_000_000
DOCUMENTS: Final = 1_000  # after which a process is replaced anyway


class WorkerLimits(NamedTuple):
    """The limits of one document: processor time, and memory beyond that of the idle process.

    The limits of a large document are higher. A mirror of 64 MB with 150,000 items takes 9 s and 360 MB; a poll has at
    most 10 MB. With 400,000 tags it takes 250 MB.
    """

    cpu_s: int = 10
    memory_bytes: int = 256 * 1024 * 1024

    def of(self, size_bytes: int) -> "WorkerLimits":
        """The limits of a document of this size."""
        return WorkerLimits(self.cpu_s + size_bytes // CPU_BYTES_PER_S, self.memory_bytes + 4 * size_bytes)


def read_frame(stream: IO[bytes], most_bytes: int) -> bytes | None:
    """Reads a part of a reply; None at the end of the stream, and for a longer part.

    Whoever has taken over the process must not fill the memory of the service.
    """
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    if size > most_bytes:
        return None
    data = stream.read(size)
    return data if len(data) == size else None


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Writes a part of a reply. Raises OSError if the service has ended."""
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def main() -> None:
    """Serves requests until standard input ends."""
    # systemd sends SIGTERM to all processes of a service. A document that is being read would become an error of its
    # source, before the service ends.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not be taken for a reply
    _set_limit(resource.RLIMIT_CORE, 0)  # documents that end the process again and again must not fill the disk
    served = 0
    virtual_bytes = begin_bytes = 0
    # A service that is killed may leave half a request, or read no reply.
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):
        while True:
            limits, work, arguments = pickle.load(requests)  # noqa: S301 - the service wrote it
            if not served:
                # The modules of the first function are loaded now.
                virtual_bytes, begin_bytes = _memory_bytes()
            # The address space, because Linux does not limit resident memory (getrlimit(2), RLIMIT_RSS).
            _set_limit(resource.RLIMIT_AS, virtual_bytes + limits.memory_bytes)
            served += 1
            began_s = time.process_time()
            # RLIMIT_CPU is in whole seconds since the start of the process.
            _set_limit(resource.RLIMIT_CPU, int(began_s) + 1 + limits.cpu_s)
            try:
                reply = _reply(work, arguments)
            except MemoryError:
                os._exit(OUT_OF_MEMORY)  # an ordinary exit runs Python, which needs memory
            del work, arguments  # before the memory is measured
            is_last = served >= DOCUMENTS or _memory_bytes()[1] > begin_bytes + GROWTH_BYTES
            write_frame(replies, dump_value((time.process_time() - began_s, is_last)))
            write_frame(replies, reply)
            del reply  # the process may wait for its next request for a minute


def _reply(work: object, arguments: tuple[object, ...]) -> bytes:
    """The encoded result, error or traceback. Raises MemoryError."""
    try:
        return dump_value((True, work(*arguments)))  # type: ignore[operator]
    except SmartfeedsError as error:
        return dump_value((False, error))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the service raises it
        return dump_value((False, traceback.format_exc()))


def _set_limit(kind: int, limit: int) -> None:
    # Some systems do not know a limit, and the hard limit of the service may be lower.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def _memory_bytes() -> tuple[int, int]:
    """The address space and the resident memory of this process; zeros on systems without /proc."""
    try:
        virtual, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
    except OSError:
        return 0, 0
    return int(virtual) * resource.getpagesize(), int(resident) * resource.getpagesize()


if __name__ == "__main__":
    main()
