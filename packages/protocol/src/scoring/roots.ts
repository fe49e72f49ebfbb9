/**
 * The integer part of the k-th root. Exact.
 * @param value at least 0 and below 10^300
 */
export function floorRoot(value: bigint, k: 2 | 3 | 4): bigint {
  if (value < 2n) return value;
  const degree = BigInt(k);
  // Any start from above leads down to the same integer; a near one leads there at once.
  let root = BigInt(Math.ceil(Number(value) ** (1 / k) * (1 + 1e-9))) + 1n;
  for (;;) {
    const next = ((degree - 1n) * root + value / root ** (degree - 1n)) / degree;
    if (next >= root) return root;
    root = next;
  }
}
