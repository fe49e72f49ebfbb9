import type { Api } from '../../operation.ts';
import { REFERENCE_API } from '../../reference.ts';

/** The contract where deployed nodes have theirs. */
export const DEPLOYED_DOCS_API = {
  getDeployedDocument: {
    ...REFERENCE_API.getDocument,
    path: '/api/docs/swagger.json',
    summary: 'Get this document (path of deployed nodes)',
    deployed: { differs: 'OpenAPI 3.1, of the routes that this node has' },
  },
  getDeployedReference: {
    ...REFERENCE_API.getReference,
    path: '/api/docs',
    summary: 'Read this document as a web page (path of deployed nodes)',
    deployed: { differs: 'a page to read; Swagger UI is not included' },
  },
} as const satisfies Api;
