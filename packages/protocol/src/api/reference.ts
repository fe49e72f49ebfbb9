import { Type } from '../type.ts';
import { type Api, text } from './operation.ts';

/** What every service says of its own contract (packages/kit/src/contract/reference.ts). */
export const REFERENCE_API = {
  getDocument: {
    method: 'GET',
    path: '/api/v0/openapi.json',
    rateClass: 'general',
    summary: 'Get this document (OpenAPI 3.1)',
    tag: 'node',
    answers: {
      200: Type.Object({
        openapi: Type.String(),
        info: Type.Record(Type.String(), Type.Unknown()),
        security: Type.Array(Type.Unknown(), {
          description: 'empty: no operation takes a credential that OpenAPI knows',
        }),
        paths: Type.Record(Type.String(), Type.Unknown()),
        components: Type.Record(Type.String(), Type.Unknown()),
      }),
    },
    errors: [],
  },
  getReference: {
    method: 'GET',
    path: '/api/v0/docs',
    rateClass: 'general',
    summary: 'Read this document as a web page',
    tag: 'node',
    answers: { 200: text('a page to read', 'text/html') },
    errors: [],
  },
} as const satisfies Api;

const FrontView = Type.Object(
  {
    name: Type.String(),
    version: Type.String(),
    description: Type.String(),
    documents: Type.Record(Type.String(), Type.String(), {
      description: 'paths of this service where there is more to read, by what is there',
    }),
  },
  { title: 'Front' },
);

/** What a service says where people look first. One with a page of its own there does without. */
export const FRONT_API = {
  getFront: {
    method: 'GET',
    path: '/',
    rateClass: 'general',
    summary: 'Say what this service is, and where its documents are',
    tag: 'node',
    answers: {
      200: {
        description: 'a page where HTML is asked for, as browsers do',
        content: { 'application/json': FrontView, 'text/html': Type.String() },
      },
    },
    errors: [],
  },
} as const satisfies Api;
