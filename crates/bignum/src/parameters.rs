//! NIST's curves: their parameters (SP 800-186 §3.2.1.3 and §3.2.1.4), least significant limb first.

use crate::curve::Curve;
use crate::field::Field;

/// P-256.
pub static P256: Curve = Curve {
    field: Field { modulus: &P256_MODULUS, radix: [(0, false), (3, true), (6, true), (7, false)] },
    b: &P256_B,
    order: &P256_ORDER,
    base_multiples: &{
        let [a, b, c, d, e, f, g, h] = &P256_ODD;
        [a, b, c, d, e, f, g, h]
    },
};

static P256_B: [u32; 8] = [
    0x27d2_604b,
    0x3bce_3c3e,
    0xcc53_b0f6,
    0x651d_06b0,
    0x7698_86bc,
    0xb3eb_bd55,
    0xaa3a_93e7,
    0x5ac6_35d8,
];

static P256_MODULUS: [u32; 8] = [
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0x0000_0000,
    0x0000_0000,
    0x0000_0000,
    0x0000_0001,
    0xffff_ffff,
];

static P256_ORDER: [u32; 8] = [
    0xfc63_2551,
    0xf3b9_cac2,
    0xa717_9e84,
    0xbce6_faad,
    0xffff_ffff,
    0xffff_ffff,
    0x0000_0000,
    0xffff_ffff,
];

/// The base point times 1, 3, 5 and 7: x and y of each.
static P256_ODD: [[u32; 8]; 8] = [
    [
        0xd898_c296,
        0xf4a1_3945,
        0x2deb_33a0,
        0x7703_7d81,
        0x63a4_40f2,
        0xf8bc_e6e5,
        0xe12c_4247,
        0x6b17_d1f2,
    ],
    [
        0x37bf_51f5,
        0xcbb6_4068,
        0x6b31_5ece,
        0x2bce_3357,
        0x7c0f_9e16,
        0x8ee7_eb4a,
        0xfe1a_7f9b,
        0x4fe3_42e2,
    ],
    [
        0xc6e7_fd6c,
        0xfb41_661b,
        0xefad_a985,
        0xe6c6_b721,
        0x1d4b_f165,
        0xc8f7_ef95,
        0xa633_0a44,
        0x5ecb_e4d1,
    ],
    [
        0xa27d_5032,
        0x9a79_b127,
        0x384f_b83d,
        0xd82a_b036,
        0x1a64_a2ec,
        0x374b_06ce,
        0x4998_ff7e,
        0x8734_640c,
    ],
    [
        0xc3d0_33ed,
        0x2155_4a0d,
        0x1f5b_e524,
        0xef8c_82fd,
        0x0866_8fdf,
        0xd784_c856,
        0x5151_40d2,
        0x5159_0b7a,
    ],
    [
        0xfda1_6da4,
        0xd1d0_bb44,
        0xd4d8_0888,
        0x0d01_2f00,
        0xbf8a_7926,
        0x8ae1_bf36,
        0x904a_727d,
        0xe0c1_7da8,
    ],
    [
        0x3187_b2a3,
        0x3006_2870,
        0xa80f_ef5b,
        0x7ef9_f8b8,
        0x7c01_fb60,
        0x25bb_3066,
        0xa0bf_7b46,
        0x8e53_3b6f,
    ],
    [
        0xc1f4_00b4,
        0xc55e_1a86,
        0xcb04_1b21,
        0x53c7_3633,
        0xa6f5_9000,
        0x6d06_9f83,
        0xe033_1836,
        0x73eb_1dbd,
    ],
];

/// P-384.
#[cfg(feature = "p384")]
pub static P384: Curve = Curve {
    field: Field { modulus: &P384_MODULUS, radix: [(0, false), (1, true), (3, false), (4, false)] },
    b: &P384_B,
    order: &P384_ORDER,
    base_multiples: &{
        let [a, b, c, d, e, f, g, h] = &P384_ODD;
        [a, b, c, d, e, f, g, h]
    },
};

#[cfg(feature = "p384")]
static P384_B: [u32; 12] = [
    0xd3ec_2aef,
    0x2a85_c8ed,
    0x8a2e_d19d,
    0xc656_398d,
    0x5013_875a,
    0x0314_088f,
    0xfe81_4112,
    0x181d_9c6e,
    0xe3f8_2d19,
    0x988e_056b,
    0xe23e_e7e4,
    0xb331_2fa7,
];

#[cfg(feature = "p384")]
static P384_MODULUS: [u32; 12] = [
    0xffff_ffff,
    0x0000_0000,
    0x0000_0000,
    0xffff_ffff,
    0xffff_fffe,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
];

#[cfg(feature = "p384")]
static P384_ORDER: [u32; 12] = [
    0xccc5_2973,
    0xecec_196a,
    0x48b0_a77a,
    0x581a_0db2,
    0xf437_2ddf,
    0xc763_4d81,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
];

/// The base point times 1, 3, 5 and 7: x and y of each.
#[cfg(feature = "p384")]
static P384_ODD: [[u32; 12]; 8] = [
    [
        0x7276_0ab7,
        0x3a54_5e38,
        0xbf55_296c,
        0x5502_f25d,
        0x8254_2a38,
        0x59f7_41e0,
        0x8ba7_9b98,
        0x6e1d_3b62,
        0xf320_ad74,
        0x8eb1_c71e,
        0xbe8b_0537,
        0xaa87_ca22,
    ],
    [
        0x90ea_0e5f,
        0x7a43_1d7c,
        0x1d7e_819d,
        0x0a60_b1ce,
        0xb5f0_b8c0,
        0xe9da_3113,
        0x289a_147c,
        0xf8f4_1dbd,
        0x9292_dc29,
        0x5d9e_98bf,
        0x9626_2c6f,
        0x3617_de4a,
    ],
    [
        0x0500_c831,
        0x02d7_e5c7,
        0x5026_580d,
        0xb408_bbae,
        0xd356_6da6,
        0xbea4_f240,
        0x202d_cd06,
        0xcb9d_3910,
        0x5fdc_7d98,
        0x6479_3c7e,
        0x606f_fa14,
        0x077a_41d4,
    ],
    [
        0x0a2f_1df1,
        0xb65f_2860,
        0xe4b5_d298,
        0xc24a_bd6b,
        0xdc11_1eac,
        0xf768_4c0e,
        0x8511_5aa5,
        0x8520_b41c,
        0x02a9_fc99,
        0x7d0b_be96,
        0x0b0c_4283,
        0xc995_f7ca,
    ],
    [
        0x836d_84bc,
        0x0abc_dbc3,
        0x1ca2_97e6,
        0x3788_2f4a,
        0xe565_83b0,
        0x4f66_61cb,
        0xbff9_8fc5,
        0xf208_e51d,
        0xa025_e467,
        0x573c_ac5e,
        0xc251_c777,
        0x11de_24a2,
    ],
    [
        0xe6c1_713a,
        0x1844_14ab,
        0x0ae8_fb33,
        0x3177_686d,
        0xb690_1aeb,
        0x8c98_6533,
        0x54d5_dee8,
        0x284b_4477,
        0x0a00_e7c5,
        0x0f58_37e9,
        0x7440_f92d,
        0x8fa6_96c7,
    ],
    [
        0x8fb6_d0e1,
        0x040f_05b4,
        0x55b9_ebb2,
        0x8b05_526f,
        0xfa7b_1c50,
        0x2d58_cc9d,
        0xfbea_5ffa,
        0xad6f_e997,
        0x234e_dffe,
        0xf29f_8ebf,
        0x65ce_4788,
        0x283c_1d73,
    ],
    [
        0xc512_ef8c,
        0x6466_4cda,
        0x32a7_8f9e,
        0x30d8_4ede,
        0x1dbd_2256,
        0xd9c9_2cd0,
        0xed79_9729,
        0x1a61_d867,
        0x8c16_9047,
        0xba52_efdb,
        0x61e4_1b88,
        0x9475_c990,
    ],
];
