import { renderMan } from '../../cluster-cli/manual/render-man.ts';
import type { DocumentedPage } from './documented-page.ts';
import { bootTemplatesPage } from './pages/boot-templates.ts';
import { commandPages, loadPrograms } from './pages/commands.ts';
import { clusterSettingsPage } from './pages/cluster-settings.ts';
import { configPage } from './pages/config.ts';
import { ganetiCommandsPage } from './pages/ganeti-commands.ts';
import { guestApiPage } from './pages/guest-api.ts';
import { hooksPage } from './pages/hooks.ts';
import { imageCataloguePage } from './pages/image-catalogue.ts';
import { installationEventsPage } from './pages/installation-events.ts';
import { osInterfacePage } from './pages/os-interface.ts';
import { parameterKeysPage } from './pages/parameter-keys.ts';
import { scriptEnvironmentPage } from './pages/script-environment.ts';
import { daemonPages } from './pages/daemons.ts';
import { errorCodesPage } from './pages/error-codes.ts';
import { filesPage } from './pages/files.ts';
import { indexPage } from './pages/index.ts';
import { listFieldsPage } from './pages/list-fields.ts';
import { metricsPage } from './pages/metrics.ts';
import { nodeApiPage } from './pages/node-api.ts';
import { overviewPage } from './pages/overview.ts';
import { rapiUsersPage } from './pages/rapi-users.ts';
import { remoteApiPage } from './pages/remote-api.ts';
import { renderMarkdown } from './render-markdown.ts';

/** Makes every page of the reference from the programs' own tables. */
export async function loadPages(): Promise<readonly DocumentedPage[]> {
  const programs = await loadPrograms();
  const pages = [
    ...programs.flatMap(commandPages),
    ...daemonPages(),
    clusterSettingsPage(programs),
    parameterKeysPage(),
    listFieldsPage(),
    errorCodesPage(),
    guestApiPage(),
    scriptEnvironmentPage(),
    installationEventsPage(),
    osInterfacePage(),
    hooksPage(),
    imageCataloguePage(),
    bootTemplatesPage(),
    configPage(),
    rapiUsersPage(),
    remoteApiPage(),
    ganetiCommandsPage(programs),
    nodeApiPage(),
    await metricsPage(),
    filesPage(),
  ];
  return [overviewPage(pages), ...pages];
}

/** Returns the Markdown files by their path below docs/reference/. */
export async function generateMarkdown(): Promise<ReadonlyMap<string, string>> {
  const pages = await loadPages();
  const files = [...pages, indexPage(pages)].flatMap(({ file, title, page }) =>
    file === null ? [] : [[file, renderMarkdown({ name: title, blocks: page.blocks })] as const],
  );
  return new Map(files);
}

/**
 * Returns the manual pages by file name: `gnt-instance-add.8`.
 * @param date day of the pages, `2026-11-21`
 */
export async function generateManPages(date: string): Promise<ReadonlyMap<string, string>> {
  const pages = await loadPages();
  const manual = pages.filter(({ isManual }) => isManual);
  return new Map(
    manual.map(({ page }) => [`${page.name}.${page.section}`, renderMan(page, date)] as const),
  );
}
