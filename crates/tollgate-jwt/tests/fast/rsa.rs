//! Signatures of an RSA key. The private part of the key was not kept.

/// The modulus of the key. Its exponent is 65537.
pub(crate) const MODULUS: &str = "uEHzCJQuSmF7grgtctgMQ_gjIt-vqtpnnr5f9-5wRNaldSfgjJtnshtj_3TqTT6HYuEaAAgS9TwnczuAlCOoXitkGVvsEvARnN0dOmfoXIEsC5KX16dRSs9P0b63XLUaAyTXrDzxmUQDurbGVtnO1i76O85gRY2qof1eVA5BHxZ-L2JYC4yTltaWn-BeLQ72QdabzeIWq8OBjKJaQWBYg-43y9U47-C9rtHskHKxVrSJuRO3omIm21ih42rwo21oh_9REhpiiRJHAt54QZDabQPt60Nxg8ogvn8w5yuSc1kp6cnIwX7D50p_2mNtuE9ttxBCZ5VBcl20nLgU9myEvw";

/// Pairs of an algorithm and a signature. The signed token has the header
/// `{"alg":ALGORITHM,"kid":"r"}` and the claims `{"sub":"ann","exp":2000}`.
pub(crate) const SIGNATURES: [(&str, &str); 6] = [
    (
        "RS256",
        "fHplLLHX3aEN1yM41x0bUl1OmpggADWdoZy4D0i2PXFmB8VmiiYfOyyJKgOwjF1Aj-2cHVJr2lJwWcZEEBlBdtHIPhjUX_QsHnqjchMcYbAm4-lKGU5znti7upB3vuSsYRuaC_ETEphY4zeZl7663geBOfd9JIcTVctXiaJ1X8oehihl6QyvVvex3Xm1jR9PlfvcahEkE8DMCaR3lGqjmrmQ55uBLT-vMgZrRnCVxT_02hqr1wJDCrTPSdPePaN7R_88KcF38bkDuxT-Pm3_L027A8U3QVHSZJIxnijSwHEa_Aa5uR-wx3-J2ag5BDwybSb_glBmj-2tj8Qdsq9WDw",
    ),
    (
        "RS384",
        "liJb5bYcOehSCEwyL2zNp67VHZuQFUHW75iMXQKVzMcsFXa-w-j-8_0X8p6Xr2-rxME3QrdGG3eztynPWkri8ICrO6N7xUVhXk_7IaZsnC_g1fVxYbqbRH7nwvTH28_mgOXMbRorGzotoZJOZfZ83jEM-JZSjyUa0zzpYFNva6xPtxkP19TzaZyi9jA5LmVCjrCroZzvLWFQdZR-uqXuzPUkBeK0UtnAtqYD3BcWStnopPTmGF1FNEhRQlwgYB5jqmgWdYecqSoSH1BceX4lhyng4Yu_NnBCS__9Nts2VntRgcY1hZVtXsDsAICcAmk9__S3F4PdCfOczJGCD1pukg",
    ),
    (
        "RS512",
        "kKVFT8CzhwsmGlOdkew66scTe4GFMIJWqxhYuRNavX4T7J421rVTxBh8CP0Ks4Z83QQKOxaXzMaFIvbKqifZOrJvUTgyfnFH6pnwe0XYePb_clAO7NkHcmXkttf_vEySWyFCIdjp5AXrNe6Ve2N17IG9ar-i0MrQnEXEa5mS550o-f66eMNvxsYBWKDdiYnqx1garl6BTHQZ3SzzLa0zNvs02FTvWM9xe63HdTP2v7sMYRIdXQOABBrSEt96kZmF2YVx5UXtp1OdBstWMiwNz_uQyHeik9oPHCgw8RVLR7PnMHYUkDzlSq5e1uCeM7DWzjrhAFhRkjgV7l1Kg1jTFw",
    ),
    (
        "PS256",
        "Au39FMQlCaaw9SolHsqoq_OXpQ_A_1NgXt-885QCihl9W9LCWstmdCdwcii-wl79nZczgdUwkIRXSD_GZ907s19bcEtQkNxWftWGAHsmmDU3_zFxvW-lHp2AcBw0l402NJIpTgRKoANHUgNMC6vk7uquxp8SImrma-eTmf7aObbfzMrrJeHPEAJC0sLAkOS33PlPcmEQJYO8phK5dV4olG7AUuAYGfirUNwBwyRHrpGOar5rn8_sQxT9XmQuxr5W2PoApFPidLsfESzsSpACMsqOz2p7273T37mpweaDmdePlYvi5QzLVHBx7fyIV5KLCY-gZHBRHdpo4DFuJPvzmA",
    ),
    (
        "PS384",
        "n6-knpZVcfmu3LWrD7TxjzZWfDp990DVhN5JyepE_0JP7W7FrMQbeIaiGD6tfLqsgZc_Qhxv1QATfaPC3GC2gmpzGNZtjYnZx5cQ7N6d8d_5-YjVrD1CC6v6WCtFrifscTKRUHhsb2uYoVz9W_02H0SqgISO7L5PJ3iLlBOQBdfyiQV1wPOWRVLNuXwsQ9ZmZ9nVIps6ciVxNXlruJ5lZN-dUlJlx6nWUsGk5rmqEjBRMdxKeRHIIfzznUq2BtyUIfGwPHnoe-JWbSNz851r86jhbiPAhqwl1j3E5diWsaI9IlAKfgTmlp_H8agO-2D7wPPBg4Gzsua2pYbDO4YD2g",
    ),
    (
        "PS512",
        "kFCSK_T_3BWTywIzLDeFa6F5SWQwxvaHA7OJS0k1NoLnnqSUfyUeSK-P8goWkmj9ZjvQm8N1GaSQSoc965c5AMrST7XA4gNsePj2DQYEfBULg3e92l0CpVxfsgqpsU9frGYgJM6LwQjgqr8p2s918hTs2rZc9WdfbG2bJCBbVNQJOw5j1aLocEbFN7iChndKhYhzPT-8roVBBRUhPvCY_v1QWsaHEnUO8AdfV5_ymGpCVpRLLAuXFOQ0OrsKGPJU5X6jnmg0EizQU113EjrsZzXCOd0HXZkQoBEkj1_nMAJPItjHliKia6zt_4voTRGq27xbA6pmOes0fW5o5y2kcw",
    ),
];

/// The same key as PEM.
pub(crate) const PEM: &str = "\
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAuEHzCJQuSmF7grgtctgM
Q/gjIt+vqtpnnr5f9+5wRNaldSfgjJtnshtj/3TqTT6HYuEaAAgS9TwnczuAlCOo
XitkGVvsEvARnN0dOmfoXIEsC5KX16dRSs9P0b63XLUaAyTXrDzxmUQDurbGVtnO
1i76O85gRY2qof1eVA5BHxZ+L2JYC4yTltaWn+BeLQ72QdabzeIWq8OBjKJaQWBY
g+43y9U47+C9rtHskHKxVrSJuRO3omIm21ih42rwo21oh/9REhpiiRJHAt54QZDa
bQPt60Nxg8ogvn8w5yuSc1kp6cnIwX7D50p/2mNtuE9ttxBCZ5VBcl20nLgU9myE
vwIDAQAB
-----END PUBLIC KEY-----
";
