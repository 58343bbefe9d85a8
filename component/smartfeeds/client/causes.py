"""Why a connection to an XMPP server could not be made, in the words of an error message."""

import os
import ssl


def cause_of(reason: object) -> str:
    """The cause that an event of slixmpp or an exception names; empty when it names none."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate is not valid, {reason.verify_message}"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed, {(reason.reason or str(reason)).lower().replace('_', ' ')}"
    if isinstance(reason, OSError) and reason.errno:
        return os.strerror(reason.errno).lower()
    return str(reason or "")


def worst(reasons: list[object]) -> object:
    """The cause to report after several attempts: an invalid certificate if there was one, else the last failure."""
    bad = [reason for reason in reasons if isinstance(reason, ssl.SSLCertVerificationError)]
    return (bad or reasons or [None])[-1]
