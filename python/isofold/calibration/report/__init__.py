"""A calibration report: one HTML file that opens offline, and the numbers in it.

`report_data` computes, `write_report` writes. The plots need matplotlib, which
`pip install 'isofold[report]'` brings and nothing else in isofold loads.
"""

from isofold.calibration.report.gather import report_data
from isofold.calibration.report.page import write_report

__all__ = ["report_data", "write_report"]
