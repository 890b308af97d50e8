import createFetchClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './schema.ts';

/** Types of the node's API by name, such as `Schemas['InstanceInfo']`. */
export type Schemas = components['schemas'];

/** An error answer of the node. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  /** HTTP status; 0 if the node did not answer. */
  readonly status: number;
  /** A code of docs/reference/error-codes.md, or `UNREACHABLE`. */
  readonly code: string;
  readonly hint: string | null;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, error: Partial<Schemas['ApiError']>) {
    super(error.message ?? `the node answers with status ${status}`);
    this.status = status;
    this.code = error.code ?? 'UNREADABLE_ANSWER';
    this.hint = error.hint ?? null;
    this.details = error.details ?? {};
  }
}

export interface ApiClientOptions {
  /** Origin of the node, such as `http://127.0.0.1:8080`; default: the origin of the page. */
  readonly baseUrl?: string;
  /** Sends the requests; default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Called for each request, to add headers. */
  readonly onRequest?: (request: Request) => void;
}

export type ApiClient = Client<paths>;

/**
 * Creates a client whose paths, parameters and answers have the types of the OpenAPI document. Its
 * methods throw ApiFailure for every status above 399, and if the node does not answer.
 */
export function createApiClient({
  baseUrl = '',
  fetch,
  onRequest,
}: ApiClientOptions = {}): ApiClient {
  const client = createFetchClient<paths>({ baseUrl, ...(fetch && { fetch }) });
  client.use({
    onRequest: ({ request }) => onRequest?.(request),
    onResponse: async ({ response }) => {
      if (!response.ok) throw await readFailure(response);
    },
    onError: ({ error }) =>
      error instanceof ApiFailure
        ? error
        : new ApiFailure(0, { code: 'UNREACHABLE', message: 'the node does not answer' }),
  });
  return client;
}

/** Reads the body of an error answer, whatever it contains. */
export async function readFailure(response: Response): Promise<ApiFailure> {
  const body: unknown = await response.json().catch(() => null);
  return new ApiFailure(response.status, typeof body === 'object' && body !== null ? body : {});
}
