/**
 * The closed catalogue of error codes. Every door (HTTP, command line, stream) speaks these and no others;
 * `docs/errors.md` and the OpenAPI document are generated from here.
 */
export type ErrorKind =
  | 'invalid'
  | 'unauthorized'
  | 'refused'
  | 'missing'
  | 'conflict'
  | 'too_large'
  | 'unavailable'
  | 'internal';

interface CatalogueEntry {
  readonly httpStatus: number;
  readonly kind: ErrorKind;
  readonly meaning: string;
}

const invalid = (meaning: string): CatalogueEntry => ({ httpStatus: 400, kind: 'invalid', meaning });
const unauthorized = (meaning: string): CatalogueEntry => ({
  httpStatus: 401,
  kind: 'unauthorized',
  meaning,
});
const refused = (meaning: string): CatalogueEntry => ({ httpStatus: 403, kind: 'refused', meaning });
const missing = (meaning: string): CatalogueEntry => ({ httpStatus: 404, kind: 'missing', meaning });
const conflict = (meaning: string): CatalogueEntry => ({ httpStatus: 409, kind: 'conflict', meaning });
const tooLarge = (meaning: string): CatalogueEntry => ({ httpStatus: 413, kind: 'too_large', meaning });
const unavailable = (meaning: string): CatalogueEntry => ({ httpStatus: 503, kind: 'unavailable', meaning });
const internal = (meaning: string): CatalogueEntry => ({ httpStatus: 500, kind: 'internal', meaning });

export const ERRORS = {
  // A request's form
  INVALID_JSON: invalid(
    'The body is not JSON, or holds text that JSON allows and storage does not (NUL, lone surrogates)',
  ),
  INVALID_PARAMETERS: invalid('A query, path, form or body value is missing or has the wrong type or range'),
  INVALID_HASH: invalid('A hash is not 64 hexadecimal digits, nor a CID where one is allowed'),
  INVALID_CURSOR: invalid('A cursor was not made by this node'),
  LIST_TOO_COSTLY: invalid(
    'The filters of a list together fit so few of so many messages, or the page is so deep, that it cannot be answered in time',
  ),
  UNSUPPORTED_MEDIA_TYPE: {
    httpStatus: 415,
    kind: 'invalid',
    meaning: 'The body has a content type that this route does not read',
  },
  BODY_TOO_LARGE: tooLarge('The body is larger than the limit of the route'),
  HEADERS_TOO_LARGE: {
    httpStatus: 431,
    kind: 'too_large',
    meaning: 'The request head is larger than the limit',
  },
  ROUTE_NOT_FOUND: missing('No such path'),
  METHOD_NOT_ALLOWED: {
    httpStatus: 405,
    kind: 'invalid',
    meaning: 'The path exists, but not with this method',
  },

  // Messages
  INVALID_ENVELOPE: invalid('The envelope or the message lacks a field, or a field has the wrong type'),
  UNKNOWN_FIELD: invalid('The envelope, the message or its content has a field that is not defined'),
  UNKNOWN_MESSAGE_TYPE: invalid('The message type is not one that this node accepts here'),
  UNKNOWN_CHAIN: invalid('The chain code is not one that this node can verify'),
  INVALID_CONTENT: invalid('The content does not have the form that its message type asks for'),
  INVALID_ADDRESS: invalid('An address is not one of its chain'),
  TIMESTAMP_IN_FUTURE: invalid("The timestamp is more than ten minutes ahead of the node's clock"),
  INVALID_SIGNATURE: unauthorized('The signature is malformed or was not made by the address'),
  HASH_MISMATCH: invalid('The content of the message does not have the item hash that the message gives'),
  SIGNATURE_REQUIRED: unauthorized('The request carries no signature'),
  NOT_PERMITTED: refused('The signer may not do this'),
  ID_MISMATCH: invalid('The id in the path is not the id in the signed content'),
  MESSAGE_NOT_FOUND: missing('No message has this hash'),
  MESSAGE_FORGOTTEN: { httpStatus: 410, kind: 'missing', meaning: 'The message was forgotten' },
  MESSAGE_NOT_PROCESSED: conflict('The message is pending or was rejected, so it has no content in force'),
  PROGRAM_NOT_FOUND: missing('No program has this hash'),
  NO_RUNNER: unavailable('No compute node can run the program now'),
  PROGRAM_UNSUPPORTED: {
    httpStatus: 501,
    kind: 'refused',
    meaning: 'The program asks for something that compute nodes here do not have',
  },
  PROGRAM_FAILED: {
    httpStatus: 500,
    kind: 'unavailable',
    meaning: 'The program raised an error that it did not catch; details.traceback has it',
  },
  PROGRAM_CRASHED: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The program ended instead of answering, or used more memory than it may',
  },
  PROGRAM_OUTPUT_TOO_LARGE: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The program answered or wrote more than it may, and was ended',
  },
  PROGRAM_TIMED_OUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'The program did not answer within its timeout, and was ended',
  },
  AGGREGATE_NOT_FOUND: missing('The address has no aggregate with this key'),
  CONTENT_NOT_FOUND: missing('The content of the message is a file that is not here yet'),
  AMEND_TARGET_NOT_FOUND: missing('The post that is amended is not here, or is not a post'),
  AMEND_OF_AMEND: invalid('An amend names the original post, not another amend'),
  FORGET_TARGET_NOT_FOUND: missing('A message that should be forgotten is not here yet'),
  FORGET_FORGET: invalid('A FORGET message cannot be forgotten'),

  // Scores
  METRICS_TOO_OLD: invalid('The newest measurements are too old to publish scores from'),

  // Instances
  INSTANCE_NOT_FOUND: missing('No instance has this id'),
  UNKNOWN_IMAGE: invalid('No image has this name'),
  IMAGE_UNAVAILABLE: unavailable(
    'The image could not be built, most often because its packages cannot be had now; the message says what was tried',
  ),
  INVALID_IMAGE: invalid('The file is not a disk image that can be used: qcow2 that stands alone, or raw'),
  DISK_TOO_SMALL: invalid('The image does not fit into the disk that was asked for'),
  INVALID_SSH_KEY: invalid('The ssh key is not one public key in OpenSSH format'),
  NO_CAPACITY: unavailable('No compute node has room for the instance'),
  NODE_NOT_FOUND: missing('No node has this id'),
  SERVICE_NOT_FOUND: missing('No service that is checked has this id'),
  ALLOCATION_NOT_FOUND: missing('No node was chosen for this virtual machine'),
  INSTANCE_BUSY: conflict('Something else is being done with the instance, and was not finished in time'),
  SNAPSHOT_NOT_FOUND: missing('The instance has no snapshot of this name'),
  SNAPSHOT_EXISTS: conflict('The instance has a snapshot of this name'),
  BACKUP_NOT_FOUND: missing('The instance has no backup with this id on this node'),
  TOO_MANY_COPIES: refused('The instance has as many snapshots or backups as one may have'),
  VM_START_FAILED: internal('The virtual machine could not be started'),
  HOST_NOT_READY: unavailable('This machine lacks something that is needed to run virtual machines'),

  // Credit
  CREDIT_INSUFFICIENT: {
    httpStatus: 402,
    kind: 'refused',
    meaning:
      'The owner has not the credit that a day of this and of everything else that the owner has costs',
  },
  TOKEN_NOT_SOLD: missing('Credits are not sold for this token on this chain'),
  COST_NOT_FOUND: missing('No instance, program or file in force has this hash'),

  // Files
  FILE_NOT_FOUND: missing('No file has this hash'),
  FILE_TOO_LARGE: tooLarge('The file is larger than the upload limit'),
  FILE_CORRUPT: internal('The bytes received do not have the hash that was asked for'),
  STORAGE_FULL: {
    httpStatus: 507,
    kind: 'unavailable',
    meaning:
      'There is no room for what is sent; the node goes on reading, and takes new things when there is room',
  },
  UPLOAD_SHARE_USED: {
    httpStatus: 429,
    kind: 'unavailable',
    meaning:
      'The client left as many files here without a message as one may; a file with its signed STORE message is taken',
  },
  STORAGE_UNAVAILABLE: unavailable('The object store that holds the files does not answer'),
  RANGE_NOT_SATISFIABLE: {
    httpStatus: 416,
    kind: 'invalid',
    meaning: 'The range asked for lies beyond the end of the file',
  },
  PRECONDITION_FAILED: {
    httpStatus: 412,
    kind: 'conflict',
    meaning: 'The request asks for another version of the file than there is (If-Match)',
  },

  // IPFS
  CID_NOT_FOUND: missing('Nobody who was asked has what this CID names'),
  NOT_UNIXFS: {
    httpStatus: 422,
    kind: 'refused',
    meaning:
      'The CID names neither a file nor a directory of IPFS that can be read here, or the path leads to none',
  },
  IPFS_UNAVAILABLE: unavailable('IPFS does not answer, or refuses; the message says what it said'),
  IPFS_TIMEOUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'IPFS was asked and nothing came in time',
  },

  // Archives of messages that chains name: why one is not read
  EMITTER_NOT_AUTHORIZED: refused('The address that emitted the event is not one whose archives are read'),
  ARCHIVE_INVALID: invalid('The event or the archive does not have the form of archives'),
  ARCHIVE_NESTED: invalid('The archive names another archive'),
  ARCHIVE_UNAVAILABLE: missing('The archive could not be fetched until its horizon'),

  // Host names
  INVALID_HOSTNAME: invalid('A host name is not four words of the list joined by hyphens'),
  HOSTNAME_NOT_FOUND: missing('No known instance has this host name'),
  INVALID_HOST: invalid(
    'The Host header is missing, given twice, malformed, or contradicts the request target',
  ),
  INSTANCE_NOT_ROUTED: missing('The instance of this host name has no address yet, or is stopped'),
  INSTANCE_UNREACHABLE: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The instance does not take connections on this port, or broke the connection off',
  },
  INSTANCE_TIMED_OUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'The instance does not answer in time',
  },

  // Randomness: why an answer does not verify
  VRF_PROOF_MALFORMED: invalid('The proof is not a token of a form that is known here'),
  VRF_PROOF_REFUTED: invalid('The proof does not hold for the seed, with the range and key that it has'),
  VRF_VALUE_MISMATCH: invalid('The proof holds, and gives other values'),
  VRF_KEY_UNKNOWN: invalid('The proof holds, by a key that no known core node has published'),
  // Indexed chains
  NETWORK_NOT_FOUND: missing('No indexed network has this name; details.networks lists those that are known'),
  INVALID_ABI: invalid('The ABI has no events, or one that is malformed'),
  WATCH_NOT_FOUND: missing('The owner has not asked for this contract to be indexed'),
  WATCH_LIMIT_REACHED: refused('The owner has as many contracts indexed as one may have'),
  CURSOR_REORGED: conflict(
    'The chain was reorganised below what earlier pages showed; details.ancestor is the last block that still stands',
  ),
  // Webhooks
  WEBHOOK_NOT_FOUND: missing('The signer has no webhook with this id'),
  WEBHOOK_URL_REFUSED: invalid('The URL of a webhook is not https, or names an address that is not public'),
  WEBHOOK_LIMIT: conflict('The owner has as many webhooks as one may have'),
  WEBHOOK_NOT_ACTIVE: conflict('The webhook is paused or disabled'),
  WEBHOOK_UNREACHABLE: unavailable('No connection to the endpoint of the webhook could be made'),
  WEBHOOK_TIMED_OUT: unavailable('The endpoint of the webhook did not answer in time'),
  WEBHOOK_ANSWER_REFUSED: unavailable('The endpoint of the webhook answered something else than success'),
  WEBHOOK_GONE: {
    httpStatus: 410,
    kind: 'missing',
    meaning: 'The endpoint of the webhook answered 410 Gone',
  },
  WEBHOOK_FAILING: unavailable('The endpoint of the webhook failed for too long'),
  DELIVERY_NOT_FOUND: missing('The webhook has no delivery of this event in its log'),
  TIMESTAMP_TOO_OLD: unauthorized("The request was signed more than five minutes before the node's clock"),
  REQUEST_REPEATED: conflict('This signed request was carried out already; sign a new one'),

  // Access and health
  CREDENTIAL_REQUIRED: unauthorized('The request needs a credential'),
  CREDENTIAL_REFUSED: refused('The credential is not valid here'),
  RATE_LIMITED: {
    httpStatus: 429,
    kind: 'unavailable',
    meaning: 'Too many requests; Retry-After says how long to wait',
  },
  OVERLOADED: unavailable('The node has more work than it may queue; try again shortly'),
  DATABASE_UNAVAILABLE: unavailable('The database does not answer'),
  DATABASE_IN_USE: conflict('Another process is using the database directory'),
  DATABASE_INCOMPATIBLE: unavailable('The database was migrated by other code than this'),
  DATABASE_NOT_RUNNABLE: unavailable('The embedded database cannot run on this machine'),
  MIGRATION_FAILED: internal('A change of the database schema could not be applied'),
  REQUEST_TIMEOUT: {
    httpStatus: 408,
    kind: 'invalid',
    meaning: 'The request did not arrive in time',
  },
  PEER_MISBEHAVED: unavailable('Another core node answered what no core node answers'),
  UPSTREAM_UNAVAILABLE: unavailable('Another service of the network does not answer'),
  SHUTTING_DOWN: unavailable('The node is stopping'),

  // Command line and configuration
  INVALID_CONFIG: invalid('A setting is missing, unknown or has the wrong form'),
  KEY_NOT_FOUND: missing('No key of this name was made on this machine'),
  KEY_EXISTS: conflict('A key of this name exists already'),
  AMBIGUOUS_NAME: conflict('The name fits more than one'),
  CONFIRMATION_REQUIRED: conflict('What cannot be undone was not confirmed'),
  TIMED_OUT: unavailable('What was waited for did not happen in time'),
  INSTANCE_NOT_READY: conflict('The instance is not in a state in which this can be done'),
  PORT_IN_USE: conflict('A port that a daemon should listen on cannot be had'),
  DEVNET_RUNNING: conflict('A devnet with the same data directory runs already'),
  DAEMON_FAILED: internal('A daemon of the devnet could not be started'),
  PROGRAM_MISSING: unavailable('A program of this machine that is needed is not installed'),

  INTERNAL: internal('A fault of the node; it is logged there'),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface AppErrorOptions {
  readonly details?: unknown;
  readonly cause?: unknown;
}

/** The only error that crosses a module's edge on purpose. `message` is for people, `code` for programs, `details` for both. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly details: unknown;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }

  get kind(): ErrorKind {
    return ERRORS[this.code].kind;
  }

  get httpStatus(): number {
    return ERRORS[this.code].httpStatus;
  }
}

/** The body of every error response (specification, "Errors"). */
export interface ErrorBody {
  error: string;
  status: 'error';
  code: ErrorCode;
  details?: unknown;
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}
