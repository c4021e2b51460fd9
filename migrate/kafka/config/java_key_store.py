"""The reader for JKS, the Java key store format up to Java 8 and the default in many samples.

Layout: magic (u4), version (u4), number of entries (u4), entries, and a 20-byte SHA-1 digest. An
entry consists of a tag (u4), an alias (UTF with u2 length), a creation time (8 bytes), and

- tag 1, a private key: its size (u4), an EncryptedPrivateKeyInfo in DER, the number of certificates
  (u4), certificates;
- tag 2, a trusted certificate: a certificate.

A certificate consists of a type (UTF with u2 length), a size (u4), and DER. Version 1 omits the
type. Integers are big-endian. JCEKS, with the magic 0xCECECECE, has the same layout but a different
cipher for keys.

Source: sun.security.provider.{JavaKeyStore, KeyProtector} @ OpenJDK 17.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

JKS_MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"

_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES = 20
# The object identifier of sun.security.provider.KeyProtector (1.3.6.1.4.1.42.2.17.1.1) in DER.
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
_OCTET_STRING = 4
_SEQUENCE = 0x30


class StoreError(Exception):
    """The store is damaged or not supported, or a password does not open it."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key, in unencrypted PEM, and its certificate chain in PEM."""

    key: str = field(repr=False)
    chain: tuple[str, ...]


class _Bytes:
    """A bounds-checked reader of bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise StoreError("the file is damaged")
        self._at += count
        return taken

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big")

    def der(self, tag: int) -> bytes:
        """Return the content of the next DER value, which must have this tag."""
        if self.number(1) != tag:
            raise StoreError("the file is damaged")
        size = self.number(1)
        return self.take(self.number(size & 0x7F) if size & 0x80 else size)


def trusted_certificates(content: bytes, password: str | None) -> list[str]:
    """Return the certificates in a JKS or JCEKS trust store as PEM.

    Args:
        content: the bytes of the file.
        password: the password to check; None to skip the check. The certificates are not encrypted,
            so they can be read without a password.

    Raises:
        StoreError: the store is damaged, or contains an entry that is not supported; or the
            password does not match.
    """
    return [entry for entry in _entries(content, password) if isinstance(entry, str)]


def key_entries(content: bytes, password: str, key_password: str) -> list[KeyEntry]:
    """Return the decrypted private keys in a JKS store.

    Args:
        content: the bytes of the file.
        password: the password of the store.
        key_password: the password of each key.

    Raises:
        StoreError: the store is damaged, is a JCEKS store, or contains an entry or a cipher that is
            not supported; or a password does not match.
    """
    if content.startswith(JCEKS_MAGIC):
        raise StoreError("migrate does not read the keys of a JCEKS store")
    return [
        KeyEntry(_pem("PRIVATE KEY", _decrypted(encrypted, key_password)), tuple(chain))
        for entry in _entries(content, password)
        if not isinstance(entry, str)
        for encrypted, chain in (entry,)
    ]


def _entries(content: bytes, password: str | None) -> Iterator[str | tuple[bytes, list[str]]]:
    """Yield a certificate in PEM, or an encrypted key and its chain, for each entry."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body)
        if not hmac.compare_digest(expected.digest(), digest):
            raise StoreError("the password does not open the store")
    source = _Bytes(body)
    source.take(len(JKS_MAGIC))
    version = source.number()
    for _ in range(source.number()):
        tag = source.number()
        source.take(source.number(2))  # the alias
        source.take(8)  # the creation time
        if tag == _KEY:
            encrypted = source.take(source.number())
            yield encrypted, [_certificate(source, version) for _ in range(source.number())]
        elif tag == _CERTIFICATE:
            yield _certificate(source, version)
        else:  # such as a JCEKS secret key; it has no stored size, so it cannot be skipped
            raise StoreError(f"the store has an entry of the unsupported kind {tag}")


def _certificate(source: _Bytes, version: int) -> str:
    if version > 1:
        source.take(source.number(2))  # the type, X.509
    return _pem("CERTIFICATE", source.take(source.number()))


def _decrypted(encrypted_info: bytes, password: str) -> bytes:
    """Return the decrypted key in PKCS#8 DER.

    The KeyProtector cipher is an XOR of the key and a chain of SHA-1 digests.
    """
    info = _Bytes(_Bytes(encrypted_info).der(_SEQUENCE))
    if not info.der(_SEQUENCE).startswith(_KEY_PROTECTOR):
        raise StoreError("migrate does not support the cipher of the key")
    protected = info.der(_OCTET_STRING)
    if len(protected) < 2 * _DIGEST_BYTES:
        raise StoreError("the file is damaged")
    secret = password.encode("utf-16-be")
    digest = protected[:_DIGEST_BYTES]  # the salt
    encrypted, check = protected[_DIGEST_BYTES:-_DIGEST_BYTES], protected[-_DIGEST_BYTES:]
    key = bytearray()
    for at in range(0, len(encrypted), _DIGEST_BYTES):
        digest = hashlib.sha1(secret + digest).digest()
        block = encrypted[at : at + _DIGEST_BYTES]
        key += bytes(byte ^ mask for byte, mask in zip(block, digest, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + bytes(key)).digest(), check):
        raise StoreError("the key has a different password; add ssl.key.password")
    return bytes(key)


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
