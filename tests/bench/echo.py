"""A component that answers from prepared bytes: `python -m bench.echo PORT EVENTS`.

Each IQ of type get is answered with a page of 50 entries, each of type set with an empty result, and with EVENTS
messages where there are any.
"""

import socket
import sys

from bench import stanzas
from bench.wire import CHUNK_BYTES, NAMESPACE

_ADDRESSES = f"from='feeds.localhost' to='u0@{stanzas.DOMAIN}/r'"
_RESULT = f"<iq type='result' id='bq-0' {_ADDRESSES}/>".encode()
_ENTRY = stanzas.ENTRY % (1, 1)
_PAGE = (
    f"<iq type='result' id='bq-0' {_ADDRESSES}><pubsub xmlns='{stanzas.PUBSUB}'><items node='f'>"
    + f"<item id='i1'>{_ENTRY}</item>" * 50
    + "</items></pubsub></iq>"
).encode()
_MESSAGE = (
    f"<message {_ADDRESSES} id='1.1' type='headline'><event xmlns='{stanzas.PUBSUB}#event'><items node='f'>"
    f"<item id='i1'>{_ENTRY}</item></items></event></message>"
).encode()


def main(port: int, events: int) -> None:
    """Answers until the driver closes the stream."""
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(f"<stream:stream xmlns='{NAMESPACE}'>".encode())
    link.recv(CHUNK_BYTES)
    link.sendall(b"<handshake>0</handshake>")
    answer = _RESULT + _MESSAGE * events
    tail = b""
    while data := link.recv(CHUNK_BYTES):
        joint = tail + data
        gets, sets = joint.count(b"<iq type='get'"), joint.count(b"<iq type='set'")
        tail = joint[-13:]
        if gets or sets:
            link.sendall(_PAGE * gets + answer * sets)
        if b"</stream:stream>" in joint:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
