"""Run a Kafka broker with TLS, SASL, client certificates, and ACLs.

Clients of the plain listener are not authenticated, and are super users.
"""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

from tests.support.kafka import Broker

_ANSWER_SECONDS = 30
_SCRAM_ITERATIONS = 4096
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, its key, and the certificates that signed it, the root last."""

    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: Sequence[x509.Certificate] = ()

    @property
    def chain_pem(self) -> str:
        """The certificate and the intermediate certificates, without the root."""
        return "".join(map(certificate_pem, (self.certificate, *self.issuers[:-1])))

    def key_pem(self, password: str | None = None) -> str:
        protection: KeySerializationEncryption = (
            BestAvailableEncryption(password.encode()) if password else NoEncryption()
        )
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection).decode()

    def pkcs12(self, password: str) -> bytes:
        return serialize_key_and_certificates(
            self.name.encode(),
            self.key,
            self.certificate,
            self.issuers[:-1],
            BestAvailableEncryption(password.encode()),
        )


def certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


class Authority:
    """A certificate authority, with a root and an intermediate authority that signs."""

    def __init__(self, name: str = "tests") -> None:
        self._root = _issue(f"{name}-root", None)
        self._intermediate = _issue(f"{name}-intermediate", self._root)

    @property
    def pem(self) -> str:
        """Return the root's certificate; clients must trust it."""
        return certificate_pem(self._root.certificate)

    @property
    def certificate(self) -> x509.Certificate:
        return self._root.certificate

    def identity(self, name: str, hosts: Sequence[x509.GeneralName] = ()) -> Identity:
        """Return a new key, with a certificate that the intermediate authority has signed."""
        return _issue(name, self._intermediate, hosts, is_authority=False)


LOCALHOST = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))


def _issue(
    name: str,
    issuer: Identity | None,
    hosts: Sequence[x509.GeneralName] = (),
    *,
    is_authority: bool = True,
) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    certificate = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    issuers = (issuer.certificate, *issuer.issuers) if issuer else ()
    return Identity(name, key, certificate, issuers)


class SecuredBroker(Broker):
    """A broker with secured listeners; users have only the permissions that `allow` grants.

    The listener SASL accepts SCRAM-SHA-512 and PLAIN over TLS. MTLS requires client certificates.
    ELSEWHERE is like SASL, but its certificate is for a different host. BARE is SASL without TLS.
    """

    def __init__(self, plain_users: dict[str, str] | None = None) -> None:
        self.authority = Authority()
        self._stores = Path(tempfile.mkdtemp(prefix="kafka-stores-"))
        trusted = self._stores / "ca.pem"
        trusted.write_text(self.authority.pem)
        here = self._store(self.authority.identity("broker", [LOCALHOST]))
        elsewhere = self.authority.identity("elsewhere", [x509.DNSName("elsewhere.example")])
        users = "".join(f' user_{name}="{word}"' for name, word in (plain_users or {}).items())
        settings = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(here),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.elsewhere.ssl.keystore.type": "PEM",
            "listener.name.elsewhere.ssl.keystore.location": str(self._store(elsewhere)),
        }
        for listener in ("sasl", "elsewhere", "bare"):
            prefix = f"listener.name.{listener}"
            settings[f"{prefix}.scram-sha-512.sasl.jaas.config"] = (
                f"{_LOGIN}.scram.ScramLoginModule required;"
            )
            settings[f"{prefix}.plain.sasl.jaas.config"] = (
                f"{_LOGIN}.plain.PlainLoginModule required{users};"
            )
        protocols = {"SASL": "SASL_SSL", "MTLS": "SSL", "ELSEWHERE": "SASL_SSL"}
        super().__init__(settings, {**protocols, "BARE": "SASL_PLAINTEXT"})

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._stores, ignore_errors=True)

    def add_scram_user(self, name: str, password: str) -> None:
        """Add a user with a password for SCRAM-SHA-512."""
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _SCRAM_ITERATIONS)
        upsertion = UserScramCredentialUpsertion(name, credential, password.encode())
        for future in self._admin.alter_user_scram_credentials([upsertion]).values():
            future.result(_ANSWER_SECONDS)

    def allow(self, user: str, operation: AclOperation, kind: ResourceType, name: str) -> None:
        """Allow a user one operation on one topic or group."""
        binding = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for future in self._admin.create_acls([binding]).values():
            future.result(_ANSWER_SECONDS)

    def _store(self, identity: Identity) -> Path:
        """Write a PEM store for the broker, with the key and the certificates in one file."""
        file = self._stores / f"{identity.name}.pem"
        file.write_text(identity.key_pem() + identity.chain_pem)
        return file
