"""The translation of Java client properties for key store and trust store files.

librdkafka reads trusted certificates from PEM, and the client certificate and key from PEM or
PKCS#12. JKS stores, and PKCS#12 trust stores, are therefore converted to PEM in memory.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from decoder.storage import read_file
from migrate.kafka.config.java_key_store import (
    JCEKS_MAGIC,
    JKS_MAGIC,
    StoreError,
    key_entries,
    trusted_certificates,
)
from migrate.kafka.config.properties import ConfigError
from migrate.model.wording import install_command

# ssl.keystore.password and ssl.key.password are not translated, because librdkafka has the same
# properties.
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
# take about 200 KB.
MAX_STORE_BYTES = 16 * 1024 * 1024

_FILE_NAME = re.compile(r".+\.(?:pem|crt|cer|key|p12|pfx|jks)", re.IGNORECASE)


class _Kind(Enum):
    PEM = "PEM"
    PKCS12 = "PKCS12"
    JKS = "JKS"


def translate_stores(layer: Mapping[str, str]) -> dict[str, str]:
    """Return the librdkafka properties for the store files in a layer of properties.

    The kind of a store is determined from the file's content, not from ``ssl.*store.type``,
    because Java also reads PKCS12 files with the default type, JKS.

    Raises:
        ConfigError: a file cannot be read, or librdkafka does not support its format.
    """
    properties: dict[str, str] = {}
    if trusted := layer.get("ssl.truststore.location"):
        kind, content = _store("ssl.truststore.location", trusted)
        if kind is _Kind.PEM:
            properties["ssl.ca.location"] = trusted
        else:
            properties["ssl.ca.pem"] = _trusted_pem(kind, content, trusted, layer)
    if own := layer.get("ssl.keystore.location"):
        kind, content = _store("ssl.keystore.location", own)
        match kind:
            case _Kind.PEM:
                properties["ssl.certificate.location"] = own
                properties["ssl.key.location"] = own
            case _Kind.PKCS12:
                properties["ssl.keystore.location"] = own
            case _Kind.JKS:
                properties.update(_own_pem(content, own, layer))
    return properties


def _trusted_pem(kind: _Kind, content: bytes, path: str, layer: Mapping[str, str]) -> str:
    """Return the certificates in a JKS or PKCS#12 trust store as PEM.

    Raises:
        ConfigError: the store cannot be read, or it contains no certificates.
    """
    name, password = "ssl.truststore.location", layer.get("ssl.truststore.password")
    try:
        if kind is _Kind.JKS:
            certificates = trusted_certificates(content, password)
        else:
            certificates = _pkcs12_certificates(content, password)
    except ImportError as error:
        pem = shlex.quote(str(Path(path).with_suffix(".pem")))
        raise ConfigError(
            f"{name}: a PKCS12 trust store requires a package: {install_command('pkcs12')}; or "
            f"export its certificates with `keytool -list -rfc -keystore {shlex.quote(path)} > "
            f"{pem}`, and set ssl.ca.location to that file"
        ) from error
    except StoreError as error:
        raise ConfigError(f"{name}: {path}: {error}; check ssl.truststore.password") from error
    if not certificates:
        raise ConfigError(f"{name}: {path}: the store contains no trusted certificate")
    return "".join(certificates)


def _pkcs12_certificates(content: bytes, password: str | None) -> list[str]:
    """Return the certificates in a PKCS#12 store as PEM.

    Raises:
        ImportError: the ``cryptography`` package is not installed.
        StoreError: the store is damaged, or the password does not open it.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    secret = password.encode() if password else None
    try:
        store = pkcs12.load_pkcs12(content, secret)
    except ValueError as error:
        raise StoreError("the password does not open the store, or the file is damaged") from error
    return [
        entry.certificate.public_bytes(Encoding.PEM).decode() for entry in store.additional_certs
    ]


def _own_pem(content: bytes, path: str, layer: Mapping[str, str]) -> dict[str, str]:
    """Return the certificate and the key in a JKS key store as PEM properties for librdkafka.

    Raises:
        ConfigError: the store cannot be read, or does not contain exactly one key.
    """
    name = "ssl.keystore.location"
    password = layer.get("ssl.keystore.password")
    if password is None:
        raise ConfigError(f"{name}: {path}: a JKS key store requires ssl.keystore.password")
    try:
        entries = key_entries(content, password, layer.get("ssl.key.password") or password)
    except StoreError as error:
        raise ConfigError(f"{name}: {path}: {error}; check ssl.keystore.password") from error
    if len(entries) != 1:
        pkcs12 = shlex.quote(str(Path(path).with_suffix(".p12")))
        raise ConfigError(
            f"{name}: {path}: the store contains {len(entries)} private keys instead of one; copy "
            f"one key with `keytool -importkeystore -srckeystore {shlex.quote(path)} -srcalias "
            f"ALIAS -destkeystore {pkcs12} -deststoretype PKCS12`, and set {name} to that file"
        )
    return {"ssl.certificate.pem": "".join(entries[0].chain), "ssl.key.pem": entries[0].key}


def check_file(name: str, path: str) -> None:
    """Refuse a file that librdkafka might read forever; accept a directory or a missing file.

    Raises:
        ConfigError: the path is a pipe, a device, or a file that is too large for certificates.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        raise ConfigError(f"{name}: {path} is a pipe or a device, not a regular file")
    if S_ISREG(status.st_mode) and status.st_size > MAX_STORE_BYTES:
        raise ConfigError(f"{name}: {path} is larger than {MAX_STORE_BYTES} bytes")


def unreadable_file(name: str, path: str, reason: str | None) -> ConfigError:
    """Return the error for a file that cannot be read.

    A value that does not look like a file name may be a password on the wrong line, so it is not
    shown.
    """
    shown = path if _FILE_NAME.fullmatch(path) else "the file"
    return ConfigError(f"{name}: {shown} cannot be read: {reason}")


def _store(name: str, path: str) -> tuple[_Kind, bytes]:
    """Return the kind of a store and its bytes.

    Raises:
        ConfigError: the file cannot be read, or it is not a store.
    """
    try:
        content = read_file(path, MAX_STORE_BYTES)
    except OSError as error:
        raise unreadable_file(name, path, error.strerror) from error
    if b"-----BEGIN " in content:
        return _Kind.PEM, content
    # A PKCS#12 store is an ASN.1 sequence, which starts with the byte 0x30.
    if content.startswith((JKS_MAGIC, JCEKS_MAGIC)):
        return _Kind.JKS, content
    if content.startswith(b"\x30"):
        return _Kind.PKCS12, content
    raise ConfigError(f"{name}: the file is not a PEM, PKCS12, or JKS store")
