import { useEffect, useState } from 'preact/hooks';
import { type Action, useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { type Identity, identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { Badge, Panel, ProofMark, Safe, Time, Until } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Failed } from '../../parts/states.tsx';
import { bytes } from '../../pure/format.ts';
import type { BackupCopy, Copies, CopyAction } from '../../workers/machine/copies.ts';

/** A backup that is being made is looked at this often. */
const OFTEN_MS = 3_000;
/** The node judges the name; this is the longest that it takes. */
const NAME_CHARS = 64;

interface Sure {
  readonly action: CopyAction;
  readonly title: string;
  /** What is lost by it. */
  readonly warning: string;
}

interface LineProps {
  readonly isBusy: boolean;
  readonly onWish: (sure: Sure) => void;
}

const Choices = (props: LineProps & { readonly restore: Sure | null; readonly drop: Sure }) => (
  <>
    {props.restore === null ? null : (
      <button
        type="button"
        class="plain"
        disabled={props.isBusy}
        aria-label={props.restore.title}
        onClick={() => props.restore && props.onWish(props.restore)}
      >
        Restore
      </button>
    )}
    <button
      type="button"
      class="plain danger"
      disabled={props.isBusy}
      aria-label={props.drop.title}
      onClick={() => props.onWish(props.drop)}
    >
      Delete
    </button>
  </>
);

const RESTORES =
  'The machine stops, its disk is replaced, and it starts again. What the disk has now is lost.';
/** Snapshots are in the disk itself. */
const RESTORES_ALL = `${RESTORES} So are its snapshots, which a backup does not have.`;

const SnapshotLine = ({
  name,
  atMs,
  ...line
}: LineProps & { readonly name: string; readonly atMs: number }) => (
  <li>
    <b class="grow">
      <Safe text={name} limit={NAME_CHARS} />
    </b>
    <span class="muted">
      <Time ms={atMs} />
    </span>
    <Choices
      {...line}
      restore={{
        action: { kind: 'restoreSnapshot', name },
        title: `Restore the snapshot ${name}`,
        warning: RESTORES,
      }}
      drop={{
        action: { kind: 'dropSnapshot', name },
        title: `Delete the snapshot ${name}`,
        warning: 'It cannot be restored after that.',
      }}
    />
  </li>
);

const TONES = { running: 'accent', done: 'good', failed: 'bad' } as const;
const STATES = { running: 'being made', done: 'done', failed: 'failed' } as const;

const BackupLine = ({ backup, ...line }: LineProps & { readonly backup: BackupCopy }) => {
  const { id, state, reason, bytes: size, checksum, atMs, untilMs, url } = backup;
  return (
    <li data-backup={state}>
      <Badge tone={TONES[state]}>{STATES[state]}</Badge>
      <span class="grow stack">
        {url === null || state !== 'done' ? (
          <code>{id}</code>
        ) : (
          <a href={url} target="_blank" rel="noopener noreferrer">
            Download {size === null ? '' : bytes(size)}
          </a>
        )}
        {checksum === null ? null : <code class="muted">{checksum}</code>}
        {reason === null ? null : <Safe text={reason} limit={300} />}
      </span>
      <span class="muted">
        <Time ms={atMs} />,{' '}
        <Until ms={untilMs} before="removed" passed="kept no longer: its node removes it" />
      </span>
      <Choices
        {...line}
        restore={
          state === 'done'
            ? {
                action: { kind: 'restoreBackup', id },
                title: `Restore the backup ${id}`,
                warning: RESTORES_ALL,
              }
            : null
        }
        drop={{
          action: { kind: 'dropBackup', id },
          title: `Delete the backup ${id}`,
          warning: 'Its node removes it.',
        }}
      />
    </li>
  );
};

const Confirm = (props: {
  readonly sure: Sure;
  readonly onYes: (action: CopyAction) => void;
  readonly onNo: () => void;
}) => (
  <div class="stale">
    <p>{props.sure.warning}</p>
    <div class="actions">
      <button type="button" class="plain danger" onClick={() => props.onYes(props.sure.action)}>
        {props.sure.title}
      </button>
      <button type="button" class="plain" onClick={props.onNo}>
        Leave it
      </button>
    </div>
  </div>
);

interface ListsProps {
  readonly copies: Copies;
  readonly doing: Action<CopyAction, Copies>;
}

function Lists({ copies: { snapshots, backups }, doing }: ListsProps) {
  const [sure, setSure] = useState<Sure>();
  const isBusy = doing.state.kind === 'running';
  const run = (action: CopyAction) => {
    setSure(undefined);
    doing.run(action);
  };
  return (
    <>
      {sure ? <Confirm sure={sure} onYes={run} onNo={() => setSure(undefined)} /> : null}
      <h3>Snapshots</h3>
      <p class="muted">
        In the disk itself: made at once, and gone with the disk. Of a machine that runs, the disk is as after
        a power cut.
      </p>
      <ul class="lines" aria-label="snapshots">
        {snapshots.map((one) => (
          <SnapshotLine key={one.name} {...one} isBusy={isBusy} onWish={setSure} />
        ))}
        {snapshots.length === 0 ? <li class="muted">None.</li> : null}
      </ul>
      <Form
        label="a new snapshot"
        button="Take a snapshot"
        isBusy={isBusy}
        onSend={({ name = '' }) => run({ kind: 'snapshot', name })}
      >
        <Field
          name="name"
          label="Name of the snapshot"
          placeholder="before-upgrade"
          limit={NAME_CHARS}
          isRequired
        />
      </Form>
      <h3>Backups</h3>
      <p class="muted">A copy of the disk, beside it on its node for a while. Fetch it to keep it.</p>
      <ul class="lines" aria-label="backups">
        {backups.map((one) => (
          <BackupLine key={one.id} backup={one} isBusy={isBusy} onWish={setSure} />
        ))}
        {backups.length === 0 ? <li class="muted">None.</li> : null}
      </ul>
      <div class="actions">
        <button type="button" class="plain" disabled={isBusy} onClick={() => run({ kind: 'backup' })}>
          Make a backup
        </button>
        {isBusy ? (
          <span class="muted" role="status">
            The node is at it.
          </span>
        ) : null}
      </div>
    </>
  );
}

/** What the disk became by an action. */
const restoredBy = (action: CopyAction): string | undefined =>
  action.kind === 'restoreSnapshot'
    ? `the snapshot ${action.name}`
    : action.kind === 'restoreBackup'
      ? `the backup ${action.id}`
      : undefined;

/** Until the owner asks, the node is not asked: the first time, that takes a signature. */
function Asked({ machine, by }: { readonly machine: Instance; readonly by: Identity }) {
  const { coreUrl } = useNetwork();
  const { instance_id: instanceId, node_address: nodeAddress } = machine;
  const [copies, setCopies] = useState<Copies>();
  const [restored, setRestored] = useState<string>();
  const doing = useAction(async (action: CopyAction) => {
    const of = { coreUrl, instanceId, nodeAddress: nodeAddress ?? '' };
    setRestored(undefined);
    const there = await verify('machineCopies', { ...of, action }, { by });
    setCopies(there);
    setRestored(restoredBy(action));
    return there;
  });
  const isMaking = copies?.backups.some(({ state }) => state === 'running') ?? false;
  const isIdle = doing.state.kind === 'done';
  useEffect(() => {
    if (!isMaking || !isIdle) return;
    const timer = setTimeout(() => doing.run({ kind: 'list' }), OFTEN_MS);
    return () => clearTimeout(timer);
  }, [isMaking, isIdle]);
  return (
    <>
      {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
      {restored === undefined ? null : (
        <p role="status">
          Its disk is <Safe text={restored} limit={NAME_CHARS * 2} /> again, and it starts.
        </p>
      )}
      {copies ? (
        <Lists copies={copies} doing={doing} />
      ) : (
        <div class="actions">
          <button
            type="button"
            class="plain"
            disabled={doing.state.kind === 'running'}
            onClick={() => doing.run({ kind: 'list' })}
          >
            Show snapshots and backups
          </button>
          <span class="muted">You sign once an hour that this tab may ask its node.</span>
        </div>
      )}
    </>
  );
}

/** Copies of a machine's disk, for its owner: made, listed, fetched, restored, deleted. */
export function MachineCopies({ machine }: { readonly machine: Instance }) {
  const me = identity.value;
  if (me?.address !== machine.owner.toLowerCase() || machine.node_address === null) return null;
  return (
    <Panel
      title="Snapshots and backups"
      wide
      aside={<ProofMark kind="said" of="nodeWord" label="its node, to its owner" />}
    >
      <Asked key={me.address} machine={machine} by={me} />
    </Panel>
  );
}
