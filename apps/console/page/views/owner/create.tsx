import { useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import { download } from '../../data/download.ts';
import { identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { useProof } from '../../data/prove.ts';
import { Panel } from '../../parts/basic.tsx';
import { Price } from '../../parts/price.tsx';
import { Failed } from '../../parts/states.tsx';
import { mebibytes } from '../../pure/format.ts';
import { type MachineForm, type MachineSize, readMachineForm, SIZES } from '../../pure/owner/machine-form.ts';
import { makeSshKey } from '../../pure/owner/ssh-key.ts';
import { linkTo } from '../../pure/route.ts';
import { useDraft } from './draft.ts';
import { NeedKey } from './need-key.tsx';

const FIRST: MachineForm = {
  ...{ name: 'web', image: 'debian:12', cpu: '1', memory: '512', disk: '4' },
  ...{ ports: '22, 80, 443', sshKey: '' },
};

interface EditProps {
  readonly form: MachineForm;
  readonly edit: (change: Partial<MachineForm>) => void;
}

function Input({
  form,
  edit,
  name,
  label,
  ...more
}: EditProps & {
  readonly name: keyof MachineForm;
  readonly label: string;
  readonly class?: string;
  readonly inputMode?: 'numeric';
}) {
  return (
    <label class={more.class ?? ''}>
      {label}
      <input
        name={name}
        value={form[name]}
        autocomplete="off"
        spellcheck={false}
        {...(more.inputMode ? { inputMode: more.inputMode } : {})}
        onInput={({ currentTarget }) => edit({ [name]: currentTarget.value })}
      />
    </label>
  );
}

const isSize = ({ cpu, memory, disk }: MachineForm, size: MachineSize) =>
  cpu === String(size.cpu) && memory === String(size.memory) && disk === String(size.disk);

const Sizes = ({ form, edit }: EditProps) => (
  <fieldset class="sizes wide-field">
    <legend>Size</legend>
    {SIZES.map((size) => (
      <label key={size.title} class="size">
        <input
          type="radio"
          name="size"
          checked={isSize(form, size)}
          onChange={() =>
            edit({ cpu: String(size.cpu), memory: String(size.memory), disk: String(size.disk) })
          }
        />
        <b>{size.title}</b>
        <span>
          {size.cpu} × {mebibytes(size.memory)}, {size.disk} GiB
        </span>
      </label>
    ))}
  </fieldset>
);

function SshKeyField({ form, edit }: EditProps) {
  const making = useAction(async (name: string) => {
    const { line, file } = await makeSshKey(`${name}@skerry`);
    download(`skerry-${name}.key`, file);
    edit({ sshKey: line });
    return name;
  });
  return (
    <>
      <label class="wide-field">
        <span>
          Your public ssh key, one line: what <code>cat ~/.ssh/id_ed25519.pub</code> prints
        </span>
        <textarea
          name="sshKey"
          rows={3}
          spellcheck={false}
          value={form.sshKey}
          onInput={({ currentTarget }) => edit({ sshKey: currentTarget.value })}
        />
      </label>
      <div class="wide-field actions">
        <button
          type="button"
          class="plain"
          onClick={() => making.run(form.name.replace(/[^A-Za-z0-9-]/g, '') || 'machine')}
        >
          Make an ssh key here
        </button>
        {making.state.kind === 'done' ? (
          <span class="muted" role="status">
            Its private half was downloaded: <code>chmod 600 skerry-{making.state.value}.key</code>, then{' '}
            <code>ssh -i</code> takes it.
          </span>
        ) : null}
        {making.state.kind === 'failed' ? <Failed failure={making.state.failure} /> : null}
      </div>
    </>
  );
}

function Fields({ form, edit }: EditProps) {
  const images = useProof('images', {});
  const names = images.kind === 'proven' ? images.value : [form.image];
  return (
    <>
      <Input form={form} edit={edit} name="name" label="Name, as you call it" />
      <label>
        Image, or the hash of a disk that is stored
        <input
          name="image"
          list="images"
          value={form.image}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => edit({ image: currentTarget.value })}
        />
        <datalist id="images">
          {names.map((image) => (
            <option key={image} value={image} />
          ))}
        </datalist>
      </label>
      <Sizes form={form} edit={edit} />
      <Input form={form} edit={edit} name="cpu" label="Cores" class="number-field" inputMode="numeric" />
      <Input
        form={form}
        edit={edit}
        name="memory"
        label="MiB of memory"
        class="number-field"
        inputMode="numeric"
      />
      <Input
        form={form}
        edit={edit}
        name="disk"
        label="GiB of disk"
        class="number-field"
        inputMode="numeric"
      />
      <Input form={form} edit={edit} name="ports" label="Ports that everybody may reach" />
      <SshKeyField form={form} edit={edit} />
    </>
  );
}

/** Of what costs nothing something that is right: the price is shown before the rest is typed. */
const UNPRICED = {
  ...{ name: 'x', image: 'debian:12', ports: '' },
  sshKey: 'ssh-ed25519 AAAAAAAAAAAAAAAAAAAAAAAA',
};

/** What it will cost, while it is being typed. */
function Foreseen({ form }: { readonly form: MachineForm }) {
  const { coreUrl } = useNetwork();
  const read = readMachineForm({ ...form, ...UNPRICED });
  const quoted = useProof(
    'quote',
    'content' in read ? { coreUrl, priced: { type: 'INSTANCE', content: read.content } } : undefined,
  );
  const cost = quoted.kind === 'proven' ? quoted.value : null;
  return cost === null ? (
    <p class="foreseen" data-price="waiting">
      <span class="muted">It costs</span> <b>…</b>
    </p>
  ) : (
    <Price cost={cost} />
  );
}

/** Asks for a machine. Its price and its host name are shown before it is signed. */
export function Create() {
  const { form, edit, drop } = useDraft('machine', FIRST);
  const asking = useAction(async (content: Readonly<Record<string, unknown>>) => {
    const { itemHash } = await act({ kind: 'createInstance', content });
    drop();
    location.hash = linkTo(['create', itemHash]);
  });
  const [fault, setFault] = useState<string>();
  const send = () => {
    const read = readMachineForm(form);
    setFault('fault' in read ? read.fault : undefined);
    if ('content' in read) asking.run(read.content);
    else asking.forget();
  };
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['machines'])}>Machines</a>
      </p>
      <h1>Create a machine</h1>
      <NeedKey what="A machine" />
      <Panel title="What it is" wide>
        <form
          class="fields"
          aria-label="machine"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <Fields form={form} edit={edit} />
          <div class="wide-field sending">
            {fault === undefined ? null : (
              <p class="wrong" role="alert">
                {fault}
              </p>
            )}
            {asking.state.kind === 'failed' ? <Failed failure={asking.state.failure} /> : null}
            <button
              type="submit"
              class="primary"
              disabled={!identity.value || asking.state.kind === 'running'}
            >
              {asking.state.kind === 'running' ? 'Waiting for your signature' : 'Look at it and sign'}
            </button>
            {/* Below: what comes later than the form must not move the button from under a finger. */}
            <Foreseen form={form} />
          </div>
        </form>
      </Panel>
    </>
  );
}
