/**
 * The closed catalogue of error codes, used by HTTP, the command line and streams alike;
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
    'The body is not a JSON object, nests too deep, or contains text that cannot be stored (NUL, lone surrogates)',
  ),
  INVALID_PARAMETERS: invalid(
    'A query, path, form or body value is missing, out of range or of the wrong type',
  ),
  INVALID_HASH: invalid('The hash is not 64 hexadecimal digits, nor a CID where one is allowed'),
  INVALID_CURSOR: invalid('The cursor was not issued by this node'),
  LIST_TOO_COSTLY: invalid(
    'The answer takes too long, or is too large: filters rarely match together, the page is too deep, or what is asked for is more than 32 MiB',
  ),
  UNSUPPORTED_MEDIA_TYPE: {
    httpStatus: 415,
    kind: 'invalid',
    meaning: 'This route does not accept the content type of the body, or accepts no compressed body',
  },
  NOT_ACCEPTABLE: {
    httpStatus: 406,
    kind: 'invalid',
    meaning: 'This route does not answer in any of the forms that `Accept` or the query asks for',
  },
  UPGRADE_REQUIRED: {
    httpStatus: 426,
    kind: 'invalid',
    meaning: 'This route is a WebSocket; connect to it as one',
  },
  BODY_TOO_LARGE: tooLarge('The body is larger than this route allows'),
  HEADERS_TOO_LARGE: {
    httpStatus: 431,
    kind: 'too_large',
    meaning: 'The request headers are larger than allowed',
  },
  ROUTE_NOT_FOUND: missing('This path does not exist'),
  METHOD_NOT_ALLOWED: {
    httpStatus: 405,
    kind: 'invalid',
    meaning: 'This path does not support the method',
  },

  // Messages
  INVALID_ENVELOPE: invalid('A field of the envelope or message is missing or has the wrong type'),
  UNKNOWN_FIELD: invalid('The envelope, message or content has an unknown field'),
  UNKNOWN_MESSAGE_TYPE: invalid('This route does not accept the message type'),
  UNKNOWN_CHAIN: invalid('This node cannot verify signatures of the chain'),
  INVALID_CONTENT: invalid('The content does not have the form that its message type requires'),
  INVALID_ADDRESS: invalid('The address is not valid on its chain'),
  TIMESTAMP_IN_FUTURE: invalid("The timestamp is more than ten minutes ahead of the node's clock"),
  INVALID_SIGNATURE: unauthorized('The signature is malformed or does not match the address'),
  HASH_MISMATCH: invalid('The content does not match the item hash in the message'),
  SIGNATURE_REQUIRED: unauthorized('The request has no signature'),
  NOT_PERMITTED: refused('The signer is not permitted to do this'),
  ID_MISMATCH: invalid('The id in the path differs from the id in the signed content'),
  MESSAGE_NOT_FOUND: missing('No message has this hash'),
  MESSAGE_FORGOTTEN: { httpStatus: 410, kind: 'missing', meaning: 'The message was forgotten' },
  MESSAGE_NOT_PROCESSED: conflict('The message is pending or rejected, so its content is not in force'),
  PROGRAM_NOT_FOUND: missing('No program has this hash'),
  NO_RUNNER: unavailable(
    'No compute node can run the program at the moment, or the one that was asked does not answer',
  ),
  PROGRAM_UNSUPPORTED: {
    httpStatus: 501,
    kind: 'refused',
    meaning: 'The program requires something that compute nodes do not support',
  },
  PROGRAM_FAILED: {
    httpStatus: 500,
    kind: 'unavailable',
    meaning:
      'The program raised an uncaught error, or exited with a code other than 0; see details.traceback',
  },
  PROGRAM_CRASHED: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The process of the program ended without an answer, or exceeded its memory limit',
  },
  PROGRAM_OUTPUT_TOO_LARGE: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The program exceeded the output limit and was stopped',
  },
  PROGRAM_TIMED_OUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'The program did not answer in time and was stopped',
  },
  AGGREGATE_NOT_FOUND: missing('The address has no aggregate with this key'),
  CONTENT_NOT_FOUND: missing("The message's content is a file that this node does not have yet"),
  AMEND_TARGET_NOT_FOUND: missing('The message to amend is not on this node, or is not a post'),
  AMEND_OF_AMEND: invalid('An amend must name the original post, not another amend'),
  FORGET_TARGET_NOT_FOUND: missing('A message to forget is not on this node yet'),
  FORGET_FORGET: invalid('A FORGET message cannot be forgotten'),

  // Scores
  METRICS_TOO_OLD: invalid('The newest measurements are too old to publish scores'),

  // Instances
  INSTANCE_NOT_FOUND: missing('No instance has this id'),
  UNKNOWN_IMAGE: invalid('No image has this name'),
  IMAGE_UNAVAILABLE: unavailable(
    'The image could not be built, usually because its packages are unavailable; the message says what was tried',
  ),
  INVALID_IMAGE: invalid('The file is not a usable disk image: a standalone qcow2 image or a raw one'),
  DISK_TOO_SMALL: invalid('The image is larger than the requested disk'),
  INVALID_SSH_KEY: invalid('The SSH key is not a single public key in OpenSSH format'),
  NO_CAPACITY: unavailable('No compute node has capacity for the instance'),
  NODE_NOT_FOUND: missing('No node has this id'),
  SERVICE_NOT_FOUND: missing('No monitored service has this id'),
  ALLOCATION_NOT_FOUND: missing('No compute node has been chosen for the instance'),
  INSTANCE_BUSY: conflict('Another operation on the instance did not finish in time'),
  SNAPSHOT_NOT_FOUND: missing('The instance has no snapshot with this name'),
  SNAPSHOT_EXISTS: conflict('The instance already has a snapshot with this name'),
  BACKUP_NOT_FOUND: missing('The instance has no backup with this id on this node'),
  TOO_MANY_COPIES: refused('The instance has reached its limit of snapshots or backups'),
  VM_START_FAILED: internal('The virtual machine could not be started'),
  HOST_NOT_READY: unavailable('This server lacks something that virtual machines need'),

  // Credit
  CREDIT_INSUFFICIENT: {
    httpStatus: 402,
    kind: 'refused',
    meaning: 'The balance does not cover one day of this and of everything else the owner has',
  },
  TOKEN_NOT_SOLD: missing('This token on this chain does not buy credits'),
  COST_NOT_FOUND: missing('No current instance, program or file has this hash'),

  // Files
  FILE_NOT_FOUND: missing('No file has this hash, or nothing is at this path of the directory'),
  FILE_TOO_LARGE: tooLarge('The file is larger than the upload limit'),
  FILE_CORRUPT: internal('The received bytes do not match the requested hash'),
  STORAGE_FULL: {
    httpStatus: 507,
    kind: 'unavailable',
    meaning:
      'The disk or the reserved space is full; the node still serves reads and accepts writes again when there is space',
  },
  UPLOAD_SHARE_USED: {
    httpStatus: 429,
    kind: 'unavailable',
    meaning:
      'The client has reached its limit of files without a message; files with a signed STORE message are accepted',
  },
  STORAGE_UNAVAILABLE: unavailable(
    'The disk or the object store that holds the files fails, or does not answer',
  ),
  RANGE_NOT_SATISFIABLE: {
    httpStatus: 416,
    kind: 'invalid',
    meaning: 'The requested range is beyond the end of the file',
  },
  PRECONDITION_FAILED: {
    httpStatus: 412,
    kind: 'conflict',
    meaning: 'The file does not match the requested version (If-Match)',
  },

  // IPFS
  CID_NOT_FOUND: missing('No available source has the content of this CID'),
  INVALID_CAR: invalid(
    'The CAR is malformed, has a block that its CID does not name, or lacks a block below its root',
  ),
  NOT_UNIXFS: {
    httpStatus: 422,
    kind: 'refused',
    meaning: 'The CID does not name a readable IPFS file or directory',
  },
  IPFS_UNAVAILABLE: unavailable('IPFS is not responding or refused the request; the message has its answer'),
  IPFS_TIMEOUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'IPFS did not answer in time',
  },

  // Archives of messages on chains: why one is not read
  EMITTER_NOT_AUTHORIZED: refused("This node does not read archives from the event's emitter"),
  ARCHIVE_INVALID: invalid('The event or the archive is malformed'),
  ARCHIVE_NESTED: invalid('The archive names another archive'),
  ARCHIVE_UNAVAILABLE: missing('The archive could not be fetched or read before its horizon'),

  // Host names
  INVALID_HOSTNAME: invalid('The host name is not four listed words joined by hyphens'),
  HOSTNAME_NOT_FOUND: missing('No known instance has this host name'),
  DOMAINS_NOT_SERVED: refused('The compute node of the instance serves no custom domains'),
  INVALID_HOST: invalid('The Host header is missing, repeated, malformed, or contradicts the request target'),
  INSTANCE_NOT_ROUTED: missing('The instance with this host name has no address yet, or is stopped'),
  INSTANCE_UNREACHABLE: {
    httpStatus: 502,
    kind: 'unavailable',
    meaning: 'The instance refuses connections on this port, or closed the connection',
  },
  INSTANCE_TIMED_OUT: {
    httpStatus: 504,
    kind: 'unavailable',
    meaning: 'The instance did not answer in time',
  },

  // Randomness: why an answer does not verify
  VRF_PROOF_MALFORMED: invalid('The proof is not a token of a known form'),
  VRF_PROOF_REFUTED: invalid('The proof is false for this seed, with its range and key'),
  VRF_VALUE_MISMATCH: invalid('The proof is valid but gives other values'),
  VRF_KEY_UNKNOWN: invalid('The proof is valid, but no known core node has published its key'),
  // Indexed chains
  NETWORK_NOT_FOUND: missing('No indexed network has this name; details.networks lists the known ones'),
  INVALID_ABI: invalid('The ABI has no events, or a malformed one'),
  WATCH_NOT_FOUND: missing('The owner has not requested indexing of this contract'),
  WATCH_LIMIT_REACHED: refused(
    'The owner, or all owners together, have reached the limit of indexed contracts, of declared events, or of requests for earlier blocks',
  ),
  CURSOR_REORGED: conflict(
    'A reorg removed blocks that earlier pages showed; details.ancestor is the last block that still stands',
  ),
  // Webhooks
  WEBHOOK_NOT_FOUND: missing('The signer has no webhook with this id'),
  WEBHOOK_URL_REFUSED: invalid('The webhook URL is not https, or its address is not public'),
  WEBHOOK_LIMIT: conflict('The owner has reached the limit of webhooks'),
  WEBHOOK_NOT_ACTIVE: conflict('The webhook is paused or disabled'),
  WEBHOOK_UNREACHABLE: unavailable('The webhook endpoint could not be reached'),
  WEBHOOK_TIMED_OUT: unavailable('The webhook endpoint did not answer in time'),
  WEBHOOK_ANSWER_REFUSED: unavailable('The webhook endpoint did not answer with success'),
  WEBHOOK_GONE: {
    httpStatus: 410,
    kind: 'missing',
    meaning: 'The webhook endpoint answered 410 Gone',
  },
  WEBHOOK_FAILING: unavailable('The webhook endpoint failed for too long'),
  DELIVERY_NOT_FOUND: missing("The webhook's log has no delivery of this event"),
  TIMESTAMP_TOO_OLD: unauthorized('The request was signed too long ago; sign it again'),
  REQUEST_REPEATED: conflict('This signed request was already carried out; sign a new one'),

  // Access and health
  CREDENTIAL_REQUIRED: unauthorized('The request requires a credential'),
  CREDENTIAL_REFUSED: refused('The credential is not valid'),
  RATE_LIMITED: {
    httpStatus: 429,
    kind: 'unavailable',
    meaning: 'Too many requests; Retry-After says how long to wait',
  },
  OVERLOADED: unavailable("The node's queues are full; try again shortly"),
  DATABASE_UNAVAILABLE: unavailable('The database is not available'),
  DATABASE_IN_USE: conflict('Another process is using the database directory'),
  DATABASE_INCOMPATIBLE: unavailable('The database was migrated by a different version of the code'),
  DATABASE_NOT_RUNNABLE: unavailable('The embedded database cannot run on this computer'),
  MIGRATION_FAILED: internal('A database migration failed'),
  REQUEST_TIMEOUT: {
    httpStatus: 408,
    kind: 'invalid',
    meaning: 'The request did not arrive in time',
  },
  PEER_MISBEHAVED: unavailable('Another core node sent an invalid answer'),
  UPSTREAM_UNAVAILABLE: unavailable('Another service of the network is not responding'),
  UNEXPECTED_ANSWER: unavailable('Another service sent an answer that does not match its contract'),
  SHUTTING_DOWN: unavailable('The node is shutting down'),
  ROLE_ELSEWHERE: unavailable('Another process of the node answers requests'),

  // Command line and configuration
  INVALID_CONFIG: invalid('A setting is missing, unknown or malformed'),
  NETWORK_UNKNOWN: missing('This computer knows no network with this name'),
  SERVICE_UNKNOWN: missing('The network does not say where this service is'),
  KEY_NOT_FOUND: missing('This computer has no key with this name'),
  KEY_EXISTS: conflict('A key with this name already exists'),
  NAME_IN_USE: conflict('Another of your instances has this name'),
  AMBIGUOUS_NAME: conflict('The name matches more than one item'),
  CONFIRMATION_REQUIRED: conflict('The action cannot be undone and was not confirmed'),
  INTERRUPTED: conflict('The command was ended before what it asked for had happened'),
  TIMED_OUT: unavailable('The expected result did not happen in time'),
  INSTANCE_NOT_READY: conflict('The instance is not in a state that allows this'),
  PORT_IN_USE: conflict('A daemon cannot listen on its port'),
  DEVNET_RUNNING: conflict('A devnet with the same data directory is already running'),
  DAEMON_FAILED: internal('A daemon of the devnet failed to start'),
  FILE_EXISTS: conflict('The file or directory is there already and would be overwritten'),
  NODE_RUNNING: conflict('A service is using this data directory'),
  BACKUP_DAMAGED: invalid('The file is no backup of a node, or bytes of it are missing or changed'),
  BACKUP_UNFIT: conflict('The backup is of another role, or of a newer release'),
  PASSPHRASE_WRONG: refused('The backup is encrypted to another passphrase'),
  PROGRAM_MISSING: unavailable('A required program is not installed on this computer'),

  INTERNAL: internal('An internal error of the node; see its log'),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface AppErrorOptions {
  readonly details?: unknown;
  readonly cause?: unknown;
}

/** The only error that modules throw to each other on purpose. `message` is for people, `code` for programs, `details` for both. */
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

/** Whether a clock that is wrong, here or there, is all that stands in the way: it is set right, and the same is taken later. */
export const isClockFault = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'TIMESTAMP_IN_FUTURE';

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
