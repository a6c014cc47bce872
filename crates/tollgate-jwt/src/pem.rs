//! The public key of a PEM file.

use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::algorithm::Material;

const P256: &str = "1.2.840.10045.3.1.7";
const P384: &str = "1.3.132.0.34";
const ED25519: &str = "1.3.101.112";

/// Reads the public key of a PEM text, which must contain exactly one key.
pub(crate) fn read(text: &str) -> Result<Material, String> {
    let mut blocks = Pem::iter_from_buffer(text.as_bytes());
    let block = blocks.next().ok_or("has no key")?;
    let block = block.map_err(|error| format!("is malformed: {error}"))?;
    if blocks.next().is_some() {
        return Err("has several keys: use a JWKS, which names each by its `kid`".into());
    }
    if block.label != "PUBLIC KEY" {
        return Err(format!("has a block {:?}: it needs `PUBLIC KEY`", block.label));
    }
    match SubjectPublicKeyInfo::from_der(&block.contents) {
        Ok(([], info)) => material(&info),
        _ => Err("has a malformed key".into()),
    }
}

fn material(info: &SubjectPublicKeyInfo<'_>) -> Result<Material, String> {
    let raw: &[u8] = &info.subject_public_key.data;
    if info.algorithm.algorithm.to_id_string() == ED25519 {
        return Material::ed25519(raw.to_vec());
    }
    match info.parsed() {
        Ok(PublicKey::RSA(key)) => return Material::rsa(key.modulus, key.exponent),
        Ok(PublicKey::EC(_)) => {}
        _ => return Err("has a key that is not supported: use RSA, EC or Ed25519".into()),
    }
    let curve = info.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    match (curve.map(|oid| oid.to_id_string()).as_deref(), raw.len(), raw.first()) {
        (Some(P256), 65, Some(4)) => Ok(Material::P256(raw.to_vec())),
        (Some(P384), 97, Some(4)) => Ok(Material::P384(raw.to_vec())),
        _ => Err("has an EC key that is not supported: use P-256 or P-384, uncompressed".into()),
    }
}
