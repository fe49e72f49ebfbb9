import { Component, type ComponentChildren, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { type Failure, failureOf } from './data/failure.ts';
import { CORE_URL, NetworkContext } from './data/network.ts';
import { route } from './data/place.ts';
import { useInfo } from './data/questions.ts';
import { withBeliefs } from './data/trust/believed.ts';
import { Lazy } from './parts/lazy.tsx';
import { Empty, Failed } from './parts/states.tsx';
import { linkTo } from './pure/route.ts';
import { Shell } from './shell.tsx';
import { MachinePage } from './views/machine.tsx';
import { Machines } from './views/machines.tsx';
import { MessagePage } from './views/message.tsx';
import { Messages } from './views/messages.tsx';
import { NodePage } from './views/node.tsx';
import { Nodes } from './views/nodes.tsx';
import { Overview } from './views/overview.tsx';

interface View {
  /** The first part of its address. */
  readonly part: string;
  readonly title: string;
  /** Whether it is reached from elsewhere than the row of views. */
  readonly isAside?: true;
  readonly show: (rest: readonly string[]) => ComponentChildren;
}

/** Every view of the console. A new one is a line here and a file in `views/`, which is loaded when it is looked at. */
const VIEWS: readonly View[] = [
  { part: '', title: 'Overview', show: () => <Overview /> },
  {
    part: 'nodes',
    title: 'Nodes',
    show: ([id]) => (id === undefined ? <Nodes /> : <NodePage key={id} nodeId={id} />),
  },
  {
    part: 'machines',
    title: 'Machines',
    show: ([id]) => (id === undefined ? <Machines /> : <MachinePage key={id} id={id} />),
  },
  {
    part: 'names',
    title: 'Names',
    show: ([subject]) => (
      <Lazy
        key={subject}
        load={() => import('./views/later.tsx')}
        show={({ NamePage, Names }) => (subject === undefined ? <Names /> : <NamePage subject={subject} />)}
      />
    ),
  },
  {
    part: 'programs',
    title: 'Programs',
    show: ([hash]) =>
      hash === undefined ? (
        <Lazy load={() => import('./views/later.tsx')} show={({ Programs }) => <Programs />} />
      ) : (
        <Lazy
          key={hash}
          load={() => import('./views/later.tsx')}
          show={({ ProgramPage }) => <ProgramPage hash={hash} />}
        />
      ),
  },
  {
    part: 'files',
    title: 'Files',
    show: () => <Lazy load={() => import('./views/later.tsx')} show={({ Files }) => <Files />} />,
  },
  {
    part: 'messages',
    title: 'Messages',
    show: ([hash]) => (hash === undefined ? <Messages /> : <MessagePage key={hash} hash={hash} />),
  },
  {
    part: 'webhooks',
    title: 'Webhooks',
    show: () => <Lazy load={() => import('./views/later.tsx')} show={({ Webhooks }) => <Webhooks />} />,
  },
  {
    part: 'credits',
    title: 'Credits',
    show: ([address]) => (
      <Lazy load={() => import('./views/later.tsx')} show={({ Credits }) => <Credits address={address} />} />
    ),
  },
  {
    part: 'indexer',
    title: 'Indexer',
    show: ([network]) => (
      <Lazy load={() => import('./views/later.tsx')} show={({ Indexer }) => <Indexer network={network} />} />
    ),
  },
  {
    part: 'random',
    title: 'Random',
    show: () => (
      <Lazy load={() => import('./views/later.tsx')} show={({ RandomValues }) => <RandomValues />} />
    ),
  },
  {
    part: 'trust',
    title: 'Trust',
    show: () => <Lazy load={() => import('./views/later.tsx')} show={({ Trust }) => <Trust />} />,
  },
  {
    part: 'create',
    title: 'Create a machine',
    isAside: true,
    show: ([id]) =>
      id === undefined ? (
        <Lazy load={() => import('./views/later.tsx')} show={({ Create }) => <Create />} />
      ) : (
        <Lazy load={() => import('./views/later.tsx')} show={({ Follow }) => <Follow id={id} />} />
      ),
  },
  {
    part: 'keys',
    title: 'Keys',
    isAside: true,
    show: () => <Lazy load={() => import('./views/later.tsx')} show={({ Keys }) => <Keys />} />,
  },
];

const NotFound = () => (
  <Empty title="There is no such page.">
    <p>
      <a href={linkTo([])}>To the overview</a>
    </p>
  </Empty>
);

/** A view that fails says so, and leaves the others alone. */
class Guard extends Component<
  { readonly children: ComponentChildren },
  { readonly failure: Failure | undefined }
> {
  override state = { failure: undefined };

  static override getDerivedStateFromError(error: unknown) {
    console.error(error);
    return { failure: failureOf(error) };
  }

  override render() {
    return this.state.failure ? <Failed failure={this.state.failure} /> : this.props.children;
  }
}

function App() {
  const { value, failure } = useInfo();
  const info = value && withBeliefs(value);
  const network = { coreUrl: CORE_URL, info };
  const [part = '', ...rest] = route.value.parts;
  const view = VIEWS.find((one) => one.part === part);
  const title = view?.title ?? 'Not found';
  useEffect(() => {
    document.title = `${[title, ...rest.map((one) => one.slice(0, 8))].join(' ')} · Skerry console`;
  }, [title, rest.join('/')]);
  return (
    <NetworkContext.Provider value={network}>
      <Shell network={network} places={VIEWS.filter(({ isAside }) => !isAside)}>
        {failure && !info ? (
          <Failed failure={failure} />
        ) : (
          <Guard key={route.value.parts.join('/')}>{view ? view.show(rest) : <NotFound />}</Guard>
        )}
      </Shell>
    </NetworkContext.Provider>
  );
}

const place = document.getElementById('app')!;
// A task of its own: what the browser has to do meanwhile, and the reader wants, comes between loading and drawing.
setTimeout(() => {
  place.replaceChildren();
  render(<App />, place);
});
