import pytest
import torch

from tessella import Box, Laguerre, Voronoi
from tessella.geometry import polygons

WINDOW = (-3.0, 3.0, -2.0, 2.0)


def area(polygon: torch.Tensor) -> float:
    if len(polygon) < 3:
        return 0.0
    x, y = polygon.T
    return float((x * y.roll(-1) - y * x.roll(-1)).sum() / 2)


def contains(polygon: torch.Tensor, point: torch.Tensor) -> bool:
    if len(polygon) < 3:
        return False
    edge, to = polygon.roll(-1, 0) - polygon, point - polygon
    return bool((edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0] > 0).all())


@pytest.mark.parametrize("kind", [Voronoi, Laguerre])
def test_polygons_tile_the_window_and_agree_with_nearest(kind):
    tessellation = kind.create([12, 5], 2)
    if kind is Laguerre:
        torch.nn.init.normal_(tessellation.rho, std=3.0)
    for variable, count in enumerate(tessellation.counts):
        found = polygons(tessellation, WINDOW, variable)
        assert len(found) == count
        assert sum(map(area, found)) == pytest.approx(24.0)
        x = torch.rand(200, 2, 2) * torch.tensor([6.0, 4.0]) - torch.tensor([3.0, 2.0])
        for point, cell in zip(x[:, variable], tessellation.nearest(x)[:, variable], strict=True):
            assert [k for k in range(count) if contains(found[k], point)] == [int(cell)]


def test_a_box_cuts_the_polygons():
    tessellation = Voronoi.create(6, 2, box=Box(torch.tensor([-1.0, -5.0]), torch.tensor([2.0, 1.0])))
    assert sum(map(area, polygons(tessellation, WINDOW))) == pytest.approx(3.0 * 3.0)


def test_polygons_are_for_the_plane():
    with pytest.raises(ValueError, match="dimension 3; expected 2"):
        polygons(Voronoi.create(4, 3), WINDOW)
