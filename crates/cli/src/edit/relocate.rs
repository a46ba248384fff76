//! Moves the code of all kinds to where it belongs when a project changes between folders by version and by group.

use crate::folder::Folder;
use crate::scaffold::moves;
use crate::scaffold::plan::Plan;
use crate::scaffold::site::Site;

/// Plans that all code lies as the layout wants it, and that everything finds it there.
///
/// # Errors
/// When a file cannot be read, or is in the way.
pub(super) fn all(folder: &mut Folder, multigroup: bool, plan: &mut Plan) -> anyhow::Result<()> {
    let before = folder.project.clone();
    folder.project.multigroup = multigroup;
    let project = &folder.project;
    let sites = before.resources.iter().flat_map(|resource| {
        let from = moves::sites(&before, resource).into_iter();
        from.zip(moves::sites(project, resource))
    });
    moves::carry(sites, plan)?;
    let project = folder.project.clone();
    for resource in folder.project.resources.iter_mut() {
        if resource.path.is_some() {
            resource.path = Some(Site::api(&project, resource).folder());
        }
    }
    Ok(())
}
