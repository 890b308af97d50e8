import type { JSX } from 'preact';
import { BootEnvironmentsPage } from '../pages/boot-environments.tsx';
import { ChartsPage } from '../pages/charts/charts.tsx';
import { ImagesPage } from '../pages/images.tsx';
import { LaunchPage } from '../pages/install/launch.tsx';
import { ReinstallPage } from '../pages/install/reinstall.tsx';
import { InstancePage } from '../pages/instance/instance.tsx';
import { InstancesPage } from '../pages/instances.tsx';
import { JobPage, JobsPage } from '../pages/jobs.tsx';
import { NetworksPage } from '../pages/networks.tsx';
import { NodesPage } from '../pages/nodes.tsx';
import { OsPage } from '../pages/os-definitions.tsx';
import { ProfilesPage } from '../pages/profiles.tsx';
import { seesCluster } from '../live/session.ts';
import { Page } from './page.tsx';

interface Section {
  readonly title: string;
  readonly to: string;
  /** Hidden from users bound to instances. */
  readonly isOfCluster?: boolean;
}

const SECTIONS: readonly Section[] = [
  { title: 'Instances', to: '/instances' },
  { title: 'Jobs', to: '/jobs' },
  { title: 'Nodes', to: '/nodes', isOfCluster: true },
  { title: 'Charts', to: '/charts', isOfCluster: true },
  { title: 'Images', to: '/images' },
  { title: 'Networks', to: '/networks' },
  { title: 'Profiles', to: '/profiles' },
  { title: 'OS definitions', to: '/os' },
  { title: 'Boot environments', to: '/bootenvs' },
];

/** The pages by the pattern of their path; a group is a parameter. */
const PAGES: readonly (readonly [RegExp, (...parameters: readonly string[]) => JSX.Element])[] = [
  [/^\/(?:instances)?$/, () => <InstancesPage />],
  [/^\/launch$/, () => <LaunchPage />],
  [/^\/instances\/([^/]+)\/reinstall$/, (name = '') => <ReinstallPage key={name} name={name} />],
  [
    /^\/instances\/([^/]+)(?:\/([a-z]*))?$/,
    (name = '', section = '') => <InstancePage key={name} name={name} section={section} />,
  ],
  [/^\/jobs$/, () => <JobsPage />],
  [/^\/nodes$/, () => <NodesPage />],
  [/^\/charts$/, () => <ChartsPage />],
  [/^\/images$/, () => <ImagesPage />],
  [/^\/networks$/, () => <NetworksPage />],
  [/^\/profiles$/, () => <ProfilesPage />],
  [/^\/os$/, () => <OsPage />],
  [/^\/bootenvs$/, () => <BootEnvironmentsPage />],
  [/^\/jobs\/(\d+)$/, (id = '') => <JobPage key={id} id={Number(id)} />],
];

/** Returns the sections of the navigation that the user may see. */
export function sections(): readonly Section[] {
  return SECTIONS.filter(({ isOfCluster }) => isOfCluster !== true || seesCluster.value);
}

/** Returns the page of a path. */
export function pageOf(path: string): JSX.Element {
  for (const [pattern, render] of PAGES) {
    const found = pattern.exec(path);
    if (found !== null) return render(...found.slice(1).map((part = '') => decode(part)));
  }
  return (
    <Page title="Not found">
      <p>This page does not exist.</p>
    </Page>
  );
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
