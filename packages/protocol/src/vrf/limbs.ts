/** Small enough that a product of two limbs and two carries stays below 2^31: plain machine integers throughout. */
const LIMB_BITS = 15;
const LIMB_MASK = (1 << LIMB_BITS) - 1;

function toLimbs(bytes: Uint8Array): Int32Array {
  const limbs = new Int32Array(Math.ceil((bytes.length * 8) / LIMB_BITS));
  let bits = 0;
  let held = 0;
  let index = 0;
  for (const byte of bytes) {
    held |= byte << bits;
    bits += 8;
    if (bits >= LIMB_BITS) {
      limbs[index++] = held & LIMB_MASK;
      held >>>= LIMB_BITS;
      bits -= LIMB_BITS;
    }
  }
  if (index < limbs.length) limbs[index] = held;
  return limbs;
}

function toBytes(limbs: Int32Array, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  let bits = 0;
  let held = 0;
  let index = 0;
  for (const limb of limbs) {
    held |= limb << bits;
    bits += LIMB_BITS;
    while (bits >= 8 && index < sizeBytes) {
      bytes[index++] = held & 0xff;
      held >>>= 8;
      bits -= 8;
    }
  }
  if (index < sizeBytes) bytes[index] = held & 0xff;
  return bytes;
}

/**
 * The product of two little-endian numbers, for a secret one: the same steps whatever the numbers are, without BigInt,
 * whose time depends on them. (The binding of libsodium has no multiplication of scalars.)
 *
 * @param sizeBytes of the product; what does not fit is lost
 */
export function multiplyLittleEndian(a: Uint8Array, b: Uint8Array, sizeBytes: number): Uint8Array {
  const left = toLimbs(a);
  const right = toLimbs(b);
  const product = new Int32Array(left.length + right.length);
  for (let i = 0; i < left.length; i++) {
    let carry = 0;
    for (let j = 0; j < right.length; j++) {
      const sum = Math.imul(left[i]!, right[j]!) + product[i + j]! + carry;
      product[i + j] = sum & LIMB_MASK;
      carry = sum >>> LIMB_BITS;
    }
    product[i + right.length] = carry;
  }
  return toBytes(product, sizeBytes);
}
