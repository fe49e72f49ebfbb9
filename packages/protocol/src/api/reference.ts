import { Type } from '../type.ts';
import { type Api, text } from './operation.ts';

/** What every service says of its own contract (kit/contract/reference.ts). */
export const REFERENCE_API = {
  getDocument: {
    method: 'GET',
    path: '/api/v0/openapi.json',
    summary: 'Get this document (OpenAPI 3.1)',
    tag: 'node',
    answers: {
      200: Type.Object({
        openapi: Type.String(),
        info: Type.Record(Type.String(), Type.Unknown()),
        paths: Type.Record(Type.String(), Type.Unknown()),
      }),
    },
    errors: [],
  },
  getReference: {
    method: 'GET',
    path: '/api/v0/docs',
    summary: 'Read this document as a web page',
    tag: 'node',
    answers: { 200: text('a page to read', 'text/html') },
    errors: [],
  },
} as const satisfies Api;

/** The same at a service that counts requests. */
export const COUNTED_REFERENCE_API = {
  getDocument: { ...REFERENCE_API.getDocument, rateClass: 'general' },
  getReference: { ...REFERENCE_API.getReference, rateClass: 'general' },
} as const satisfies Api;
