/** Limits by which every address but one is a stranger's, and nobody asks too often. */
export const limitsExcept = (own: string) => ({
  isEnabled: true,
  perMinute: { general: 1_000_000, authenticated: 1_000_000, heavy: 10 },
  trustedProxies: [],
  exempt: [own],
});
