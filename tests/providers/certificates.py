"""Certificates made for a test: an authority of its own, and servers' with its signature or their own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """Signs certificates; `bundle` is the file that makes a client trust them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority of the tests")
        self.bundle = folder / "authority.pem"
        certificate = _certificate(
            self._name, self._name, self._key, self._key, x509.DNSName("authority"), ca=True
        )
        self.bundle.write_bytes(certificate.public_bytes(Encoding.PEM))

    def server(self, host: str, *, signs_itself: bool = False) -> ssl.SSLContext:
        """What a server of that name shows."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(host)
        issuer, signer = (name, key) if signs_itself else (self._name, self._key)
        certificate = _certificate(name, issuer, key, signer, x509.DNSName(host), ca=signs_itself)
        path = self._folder / f"{host}-{signs_itself}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(path)
        return tls


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    host: x509.DNSName,
    *,
    ca: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
