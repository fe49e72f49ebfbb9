import type { Document } from '@skerry/kit';

export interface DescribedParameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
}

export interface DescribedResponse {
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}

/** An operation of a document with what it refers to in the place of the references. */
export interface DescribedOperation {
  readonly path: string;
  readonly method: string;
  /** `GET /api/v0/messages/{hash}` */
  readonly name: string;
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly requestBody?: object;
  readonly parameters: readonly DescribedParameter[];
  readonly responses: Readonly<Record<string, DescribedResponse>>;
  readonly 'x-signed': boolean;
  readonly 'x-rate-limit': { readonly class: string; readonly per_minute: number | null };
}

/** Every operation of a document. */
export function operationsOf(document: Document): DescribedOperation[] {
  const resolve = <T extends object>(one: object): T => {
    const [, , kind = '', name = ''] = (one as { $ref?: string }).$ref?.split('/') ?? [];
    return (document.components[kind]?.[name] ?? one) as T;
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      path,
      method,
      name: `${method.toUpperCase()} ${path}`,
      parameters: (operation.parameters ?? []).map((one) => resolve<DescribedParameter>(one)),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, one]) => [status, resolve<DescribedResponse>(one)]),
      ),
    })),
  );
}
