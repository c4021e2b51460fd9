"""The translation of the Java client's properties for key store and trust store files.

librdkafka reads trusted certificates from PEM, and the client's certificate and key from PEM or
PKCS#12.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from decoder.storage import read_file
from migrate.kafka.config.properties import ConfigError

# ssl.keystore.password is not translated, because librdkafka has the same property.
STORE_PROPERTIES = frozenset(
    {
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


# The maximum size of a store in bytes. The certificates of all authorities that a machine trusts
# have about 200 KB.
MAX_STORE_BYTES = 16 * 1024 * 1024

_FILE_NAME = re.compile(r".+\.(?:pem|crt|cer|key|p12|pfx|jks)", re.IGNORECASE)


class _Kind(Enum):
    PEM = "PEM"
    PKCS12 = "PKCS12"
    JKS = "JKS"


def translate_stores(layer: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's properties for the store files that a layer of properties names.

    The kind of a store is determined from the file's content, not from ``ssl.*store.type``,
    because with the default type JKS, Java also reads PKCS12 files.

    Raises:
        ConfigError: a file cannot be read, or librdkafka does not support its format.
    """
    properties: dict[str, str] = {}
    if trusted := layer.get("ssl.truststore.location"):
        kind = _kind("ssl.truststore.location", trusted)
        if kind is not _Kind.PEM:
            pem = Path(trusted).with_suffix(".pem")
            raise ConfigError(
                f"ssl.truststore.location: librdkafka reads no {kind.value} trust store; write its "
                f"certificates as PEM: `keytool -list -rfc -keystore {shlex.quote(trusted)} "
                f"> {shlex.quote(str(pem))}`, and set ssl.ca.location to that file"
            )
        properties["ssl.ca.location"] = trusted
    if own := layer.get("ssl.keystore.location"):
        match _kind("ssl.keystore.location", own):
            case _Kind.PEM:
                properties["ssl.certificate.location"] = own
                properties["ssl.key.location"] = own
            case _Kind.PKCS12:
                properties["ssl.keystore.location"] = own
            case _Kind.JKS:
                pkcs12 = Path(own).with_suffix(".p12")
                raise ConfigError(
                    "ssl.keystore.location: librdkafka reads no JKS key store; convert it: "
                    f"`keytool -importkeystore -srckeystore {shlex.quote(own)} -destkeystore "
                    f"{shlex.quote(str(pkcs12))} -deststoretype PKCS12`, and set "
                    "ssl.keystore.location to that file"
                )
    return properties


def check_file(name: str, path: str) -> None:
    """Refuse a file that librdkafka might read for ever; accept a directory or a missing file.

    Raises:
        ConfigError: the path is a pipe, a device, or a file that is too large for certificates.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        raise ConfigError(f"{name}: {path}: a pipe or a device, and no regular file")
    if S_ISREG(status.st_mode) and status.st_size > MAX_STORE_BYTES:
        raise ConfigError(f"{name}: {path}: larger than {MAX_STORE_BYTES} bytes")


def unreadable_file(name: str, path: str, reason: str | None) -> ConfigError:
    """Return the error of a file that cannot be read.

    A value that is not named like a file may be a password on the wrong line, so it is not shown.
    """
    shown = path if _FILE_NAME.fullmatch(path) else "the file"
    return ConfigError(f"{name}: {shown} cannot be read: {reason}")


def _kind(name: str, path: str) -> _Kind:
    try:
        content = read_file(path, MAX_STORE_BYTES)
    except OSError as error:
        raise unreadable_file(name, path, error.strerror) from error
    if b"-----BEGIN " in content:
        return _Kind.PEM
    # JKS and its successor JCEKS have magic numbers; PKCS#12 is an ASN.1 sequence.
    if content.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")):
        return _Kind.JKS
    if content.startswith(b"\x30"):
        return _Kind.PKCS12
    raise ConfigError(f"{name}: the file is no PEM, PKCS12 or JKS store")
