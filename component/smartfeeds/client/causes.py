"""The cause of a failed connection to an XMPP server, as text for an error message."""

import os
import ssl


def cause_of(reason: object) -> str:
    """Returns the cause that an event of slixmpp or an exception names, or an empty text."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate is not valid, {reason.verify_message}"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed, {(reason.reason or str(reason)).lower().replace('_', ' ')}"
    if isinstance(reason, OSError) and reason.errno:
        return os.strerror(reason.errno).lower()
    return str(reason or "")


def worst(reasons: list[object]) -> object:
    """Returns the cause to report after several attempts: an invalid certificate if there was one, else the last cause.

    An invalid certificate is the only cause that another attempt cannot repair.
    """
    bad = [reason for reason in reasons if isinstance(reason, ssl.SSLCertVerificationError)]
    return (bad or reasons or [None])[-1]
