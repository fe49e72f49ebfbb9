import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';

/**
 * Trusts these authorities beside those that everybody trusts: a list of one's own stands in their place otherwise. Made once, since
 * to read them all takes longer than a request.
 * @param pem certificates
 * @param usual those that everybody trusts
 */
export const trustAlso = (pem: string, usual: readonly string[] = rootCertificates): SecureContext =>
  createSecureContext({ ca: [...usual, pem] });
