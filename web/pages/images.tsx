import type { JSX } from 'preact';
import type { Schemas } from '../../client/api-client.ts';
import { api, backgroundApi, mayWrite, seesCluster } from '../live/session.ts';
import { useLoaded } from '../live/use-loaded.ts';
import { ChangeButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Failure } from '../parts/failure.tsx';
import { formatBytes, formatNumber, formatTime } from '../parts/format.ts';
import { List } from '../parts/list.tsx';
import { commandLine } from '../parts/quote.ts';
import { Text } from '../parts/text.tsx';
import { notify } from '../shell/notices.tsx';
import { Page } from '../shell/page.tsx';
import { Link, query, setQuery } from '../shell/router.tsx';

type Image = Schemas['ImageInfo'];

/** How the checksum of an image is verified. */
const VERIFIED: Readonly<Record<Image['verified'], string>> = {
  signature: "the publisher's signature",
  https: 'HTTPS',
  catalogue: 'the catalogue',
  import: 'its import',
};
const IMPORTED = 'imported';
const BUILT_IN = 'built-in';
const UPDATE = commandLine('gnt-image', 'update');

export function ImagesPage(): JSX.Element {
  const images = useLoaded(
    async (signal) => (await backgroundApi.GET('/v1/images', { signal })).data,
    [],
  );
  const filter = query.value.get('name') ?? '';
  const shown = images.value.value?.filter(({ name, title, aliases }) =>
    [name, title, ...aliases].some((text) => text.toLowerCase().includes(filter.toLowerCase())),
  );
  return (
    <Page title="Images">
      {images.error.value !== undefined && <Failure error={images.error.value} />}
      <div class="filters" role="search">
        <label class="grow">
          <span class="unseen">Filter by name</span>
          <input
            type="search"
            data-filter
            placeholder="Filter by name"
            value={filter}
            onInput={(event) => setQuery({ name: event.currentTarget.value })}
          />
        </label>
      </div>
      <List
        label="Images"
        rows={shown}
        keyOf={({ catalogue, name }) => `${catalogue}:${name}`}
        empty="No image matches."
        columns={[
          {
            title: 'Name',
            cell: (image) => (
              <>
                <Text>{nameOf(image)}</Text>
                {image.aliases.length > 0 && (
                  <span class="soft">
                    {' '}
                    also <Text>{image.aliases.join(', ')}</Text>
                  </span>
                )}
              </>
            ),
          },
          { title: 'Title', isWide: true, cell: ({ title }) => <Text>{title}</Text> },
          {
            title: 'Login user',
            isWide: true,
            cell: ({ user }) => user !== null && <Text>{user}</Text>,
          },
          {
            title: 'Smallest disk',
            cell: ({ minDiskBytes }) => minDiskBytes !== null && formatBytes(minDiskBytes),
          },
          { title: 'Verified by', isWide: true, cell: ({ verified }) => VERIFIED[verified] },
          { title: 'Cached', isWide: true, cell: ({ isCached }) => (isCached ? 'yes' : 'no') },
          {
            title: 'Actions',
            cell: (image) =>
              mayWrite.value && (
                <div class="buttons">
                  <Link class="button" to={`/launch?image=${encodeURIComponent(nameOf(image))}`}>
                    Launch
                  </Link>
                  {seesCluster.value && image.catalogue === IMPORTED && (
                    <RemoveButton name={image.name} kind="image" onRemoved={images.reload} />
                  )}
                </div>
              ),
          },
        ]}
      />
      <CommandLine>{commandLine('gnt-image', 'list')}</CommandLine>
      {seesCluster.value && <Catalogues onChange={images.reload} />}
    </Page>
  );
}

function nameOf({ name, catalogue, isShadowed }: Image): string {
  return isShadowed ? `${catalogue}:${name}` : name;
}

function Catalogues({ onChange }: { readonly onChange: () => void }): JSX.Element {
  const catalogues = useLoaded(
    async (signal) => (await backgroundApi.GET('/v1/catalogues', { signal })).data,
    [],
  );
  const reload = (): void => {
    catalogues.reload();
    onChange();
  };
  const update = async (): Promise<void> => {
    await api.POST('/v1/catalogues/update', { body: { names: [] } });
    notify('good', 'The catalogues are up to date');
    reload();
  };
  return (
    <section>
      <header class="title">
        <h2>Catalogues</h2>
        {mayWrite.value && (
          <div class="actions">
            <ChangeButton of="catalogues" command={UPDATE} run={update}>
              Update all
            </ChangeButton>
          </div>
        )}
      </header>
      {catalogues.error.value !== undefined && <Failure error={catalogues.error.value} />}
      <List
        label="Catalogues"
        rows={catalogues.value.value}
        keyOf={({ name }) => name}
        empty="There is no catalogue."
        columns={[
          { title: 'Name', cell: ({ name }) => <Text>{name}</Text> },
          { title: 'Source', cell: ({ source }) => <Text>{source}</Text> },
          {
            title: 'Images',
            cell: ({ images, refused }) =>
              refused === 0
                ? formatNumber(images)
                : `${formatNumber(images)}, ${formatNumber(refused)} invalid`,
          },
          {
            title: 'Updated',
            isWide: true,
            cell: ({ updatedAtMs }) => updatedAtMs !== null && formatTime(updatedAtMs),
          },
          {
            title: 'Actions',
            cell: ({ name }) =>
              mayWrite.value &&
              name !== BUILT_IN &&
              name !== IMPORTED && <RemoveButton name={name} kind="catalogue" onRemoved={reload} />,
          },
        ]}
      />
      <CommandLine>{UPDATE}</CommandLine>
    </section>
  );
}

interface RemoveButtonProps {
  readonly name: string;
  readonly kind: 'image' | 'catalogue';
  readonly onRemoved: () => void;
}

function RemoveButton({ name, kind, onRemoved }: RemoveButtonProps): JSX.Element {
  const run = async (): Promise<void> => {
    await api.POST('/v1/images/remove', { body: { name } });
    notify('good', `${name} is removed`);
    onRemoved();
  };
  return (
    <ChangeButton
      of={name}
      warning={`The ${kind} is removed from this node. Instances keep their disks.`}
      command={commandLine('gnt-image', 'remove', name)}
      run={run}
    >
      Remove
    </ChangeButton>
  );
}
